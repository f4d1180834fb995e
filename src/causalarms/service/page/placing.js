// Where the boxes of nodes go, in pixels: the server's positions, and no two on top of each other.
// Causes are on the left; where a panel is too narrow for that, on top.

const CHARACTER = 7.5; // average width of a character
const HALF_HEIGHT = 15;
const MARGIN = 10;
const GAP = 12;
const LAYER = 84; // room that a layer needs across
const ROW = 62; // and down
const BETWEEN = 28; // panels side by side

// How panels share the page: {width, across, columns}.
export function planOf(places, pageWidth, panels) {
  const layers = layersOf(Object.entries(places)).length;
  const wide = (columns) => (pageWidth - BETWEEN * (columns - 1)) / columns;
  for (const columns of panels > 1 && pageWidth >= 860 ? [2, 1] : [1]) {
    if (wide(columns) / layers >= LAYER) return { width: wide(columns), across: true, columns };
  }
  const columns = panels > 1 && pageWidth >= 700 ? 2 : 1;
  return { width: wide(columns), across: false, columns };
}

// {boxes by name, height}; a box is {x, y, halfWidth, halfHeight, text}.
export function boxesOf(places, plan) {
  return plan.across ? across(places, plan) : down(places, plan);
}

function across(places, { width }) {
  const entries = Object.entries(places);
  const layers = layersOf(entries);
  const most = Math.max(...layers.map((layer) => layer.length));
  const room = width / layers.length;
  const widest = Math.min(170, Math.max(1.45 * room, 84));
  const height = Math.max(150, most * 58 + 40, Math.min(0.5 * width, 110 + 40 * layers.length, 560));
  const boxes = Object.create(null); // a node may be called `__proto__`
  for (const [name, { x, y }] of entries) {
    const box = boxOf(name, widest);
    box.x = box.halfWidth + MARGIN + (width - 2 * (box.halfWidth + MARGIN)) * x;
    box.y = HALF_HEIGHT + MARGIN + (height - 2 * (HALF_HEIGHT + MARGIN)) * (1 - y);
    boxes[name] = box;
  }
  pushApart(Object.values(boxes), height);
  return { boxes, height };
}

// Up and down only: left and right say who causes whom.
function pushApart(boxes, height) {
  for (let round = 0; round < 60; round += 1) {
    let moved = false;
    for (const a of boxes) {
      for (const b of boxes) {
        if (a === b || a.y > b.y || (a.y === b.y && boxes.indexOf(a) > boxes.indexOf(b))) continue;
        const aside = Math.abs(a.x - b.x) - a.halfWidth - b.halfWidth;
        const lack = 2 * HALF_HEIGHT + GAP - (b.y - a.y);
        if (aside > 8 || lack <= 0.5) continue;
        a.y -= lack / 2;
        b.y += lack / 2;
        moved = true;
      }
    }
    for (const box of boxes) {
      box.y = Math.min(Math.max(box.y, HALF_HEIGHT + 4), height - HALF_HEIGHT - 4);
    }
    if (!moved) return;
  }
}

function down(places, { width }) {
  const boxes = Object.create(null); // a node may be called `__proto__`
  let top = HALF_HEIGHT + MARGIN;
  for (const layer of layersOf(Object.entries(places))) {
    const sorted = [...layer].sort((a, b) => a[1].y - b[1].y);
    for (const row of rowsOf(sorted.map(([name, at]) => [boxOf(name, 136), name, at]), width)) {
      lineUp(row, width);
      for (const [box, name] of row) {
        box.y = top;
        boxes[name] = box;
      }
      top += ROW;
    }
  }
  return { boxes, height: top - ROW + HALF_HEIGHT + MARGIN };
}

// As many boxes beside each other as fit.
function rowsOf(row, width) {
  const rows = [[]];
  let filled = MARGIN;
  for (const entry of row) {
    const needed = 2 * entry[0].halfWidth + GAP;
    if (rows.at(-1).length && filled + needed > width - MARGIN) {
      rows.push([]);
      filled = MARGIN;
    }
    rows.at(-1).push(entry);
    filled += needed;
  }
  return rows;
}

function lineUp(row, width) {
  let least = MARGIN;
  let rest = row.reduce((sum, [box]) => sum + 2 * box.halfWidth + GAP, 0);
  for (const [box, , { y }] of row) {
    rest -= 2 * box.halfWidth + GAP;
    const wish = MARGIN + box.halfWidth + (width - 2 * (MARGIN + box.halfWidth)) * y;
    const most = width - MARGIN - rest - box.halfWidth;
    box.x = Math.max(least + box.halfWidth, Math.min(wish, most));
    least = box.x + box.halfWidth + GAP;
  }
}

function boxOf(name, widest) {
  const letters = [...name];
  const most = Math.max(4, Math.floor((widest - 22) / CHARACTER));
  const text = letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
  const halfWidth = Math.max(24, ([...text].length * CHARACTER) / 2 + 11);
  return { text, halfWidth, halfHeight: HALF_HEIGHT, x: 0, y: 0 };
}

// Entries [name, {x, y}] with the same x together, from left to right.
function layersOf(entries) {
  const layers = new Map();
  for (const entry of entries) {
    const key = entry[1].x.toFixed(3);
    layers.set(key, [...(layers.get(key) ?? []), entry]);
  }
  return [...layers].sort((a, b) => a[0] - b[0]).map(([, layer]) => layer);
}
