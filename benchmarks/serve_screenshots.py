"""Pictures of the live page, for people to look at: docs/images/page-*.png.

`python benchmarks/serve_screenshots.py [--out docs/images] [--studies FOLDER]`
A plant of 12 quantities in physical units and 7 factors of two levels (`process_plants.py`), of
which one mechanism changes halfway, after 5, 60 and 300 results; each on a desk in light and dark,
and on a phone of 360 pixels. Needs the extras [serve] and [test], and chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from causalarms.study import Study
from process_plants import Plant, messy_plant

RESULTS = (5, 60, 300)
CHANGES_AT = 180
FLAGS = [
    "--no-sandbox", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
FREQUENT, RARE = 180, 75  # colours in a file: those of flat areas, and those unlike any of them


# What the operator of the plant calls its switches, and their two positions.
FACTORS: dict[str, list[str | int]] = {
    "feed": ["south", "north"], "pump": ["normal", "high"], "catalyst": ["A", "B"],
    "jacket": [60, 80], "stirrer": ["disc", "anchor"], "valve": ["open", "throttled"],
    "cooling": ["normal", "strong"],
}  # fmt: skip


class View(NamedTuple):
    width: int
    height: int  # of the picture at most
    scheme: Literal["light", "dark"]


VIEWS = {
    "light": View(1280, 2700, "light"),
    "dark": View(1280, 2700, "dark"),
    "phone": View(360, 3600, "light"),
}


def make_studies(folder: Path) -> list[Path]:
    """One file per number of results, each with a trial that waits for its result."""
    plant = messy_plant(3, 1, CHANGES_AT)
    path = folder / "plant.db"
    study = Study.create(
        path,
        nodes=plant.nodes,
        reward=plant.reward,
        factors={
            name: {"levels": levels, "acts_on": switch.acts_on, "effect": "free"}
            for (name, levels), switch in zip(FACTORS.items(), plant.switches, strict=True)
        },
        changes=True,
        seed=1,
    )
    files = []
    for told in range(1, max(RESULTS) + 1):
        play(study, plant)
        if told in RESULTS:
            study.close()
            files.append(folder / f"plant-{told}.db")
            shutil.copy(path, files[-1])
            with Study.open(files[-1]) as copy:
                copy.ask(worker="line 1")
            study = Study.open(path)
    study.close()
    path.unlink()
    return files


def play(study: Study, plant: Plant) -> None:
    trial = study.ask(worker="line 1")
    on = [trial.levels[name] == levels[1] for name, levels in FACTORS.items()]
    if trial.number % 23 == 7:
        study.fail(trial, "the pump stopped")
        play(study, plant)
    else:
        study.tell(trial, plant.measure(trial.number, np.array(on, dtype=np.uint8)))


@contextmanager
def served(path: Path, port: int) -> Iterator[str]:
    code = "from causalarms.cli.main import main; main()"
    command = [sys.executable, "-c", code, "serve", str(path)]
    server = subprocess.Popen([*command, "--port", str(port)])
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}api/v1/healthz").close()
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait()


def photograph(browser: Browser, address: str, out: Path, name: str) -> None:
    for kind, view in VIEWS.items():
        context = browser.new_context(
            viewport={"width": view.width, "height": 900}, color_scheme=view.scheme
        )
        context.add_init_script("localStorage.setItem('causalarms:worker', 'line 1')")
        page = context.new_page()
        page.goto(address)
        page.get_by_text("live", exact=True).wait_for()
        page.locator("#checks h2").wait_for()
        page.wait_for_timeout(800)
        whole = Image.open(BytesIO(page.screenshot(full_page=True)))
        top = whole.crop((0, 0, view.width, min(view.height, whole.height)))
        few_colours(top.convert("RGB")).save(out / f"page-{name}-{kind}.png", optimize=True)
        context.close()


def few_colours(picture: Image.Image) -> Image.Image:
    """A third of the bytes: every colour becomes the nearest of those that are kept."""
    pixels = np.asarray(picture, dtype=np.int64)
    packed = pixels @ np.array([1 << 16, 1 << 8, 1])
    found, place, count = np.unique(packed, return_inverse=True, return_counts=True)
    colours = np.column_stack([found >> 16, found >> 8 & 255, found & 255])
    kept = colours[np.argsort(-count, kind="stable")[:FREQUENT]]
    for _ in range(RARE):
        apart = ((colours[:, None] - kept[None]) ** 2).sum(axis=2).min(axis=1)
        kept = np.vstack([kept, colours[np.argmax(apart * np.sqrt(count))]])
    nearest = ((colours[:, None] - kept[None]) ** 2).sum(axis=2).argmin(axis=1)
    few = Image.fromarray(nearest[place].reshape(packed.shape).astype(np.uint8), "P")
    few.putpalette(kept.ravel().tolist())
    return few


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--studies", type=Path, default=Path("out/screenshots"))
    parser.add_argument("--port", type=int, default=8765)
    given = parser.parse_args()
    given.studies.mkdir(parents=True, exist_ok=True)
    given.out.mkdir(parents=True, exist_ok=True)
    files = [given.studies / f"plant-{told}.db" for told in RESULTS]
    if not all(file.exists() for file in files):
        files = make_studies(given.studies)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for number, file in enumerate(files):
            with served(file, given.port + number) as address:
                photograph(browser, address, given.out, file.stem.removeprefix("plant-"))
        browser.close()


if __name__ == "__main__":
    main()
