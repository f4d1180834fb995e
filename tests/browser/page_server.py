"""A service in this process that a browser can open, be cut off from and find again."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Self

from causalarms.service.app import Options, Service
from causalarms.service.server import listen, make_server


class PageServer:
    """Started by entering it; `stop` and `start` keep the port."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self._options = options
        self._port = 0

    @property
    def address(self) -> str:
        root = self._options.get("root_path", "").strip("/")
        return f"http://127.0.0.1:{self._port}/" + (f"{root}/" if root else "")

    def start(self) -> None:
        options = Options(port=self._port, **self._options)
        self._taken = listen(options)
        self._port = self._taken.getsockname()[1]
        try:
            self.service = Service(self.path, options)
        except BaseException:
            self._taken.close()  # or a later test gets the warning of an open socket
            raise
        self._server = make_server(self.service, options)
        self._thread = threading.Thread(target=self._server.run, args=([self._taken],), daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self._taken.close()
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.stop()
