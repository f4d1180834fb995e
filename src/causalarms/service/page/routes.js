// Routes of the arrows of a graph.
//
// Straight if possible, bent around other nodes if not. The same idea as the project's printed
// pictures, small enough to run while a slider moves.

const BENDS = [0, 0.06, -0.06, 0.12, -0.12, 0.2, -0.2, 0.3, -0.3, 0.42, -0.42];
const POINTS = 24;
const CLEARANCE = 7; // pixels between an arrow and a node

// Where every arrow leaves and enters, [[from, to], ...]: those on the same side of a node are
// spread, in the order of their directions, so that no head hides another one.
export function aims(edges, boxes) {
  const ends = edges.map(({ parent, child }) => [{ ...boxes[parent] }, { ...boxes[child] }]);
  const meeting = new Map();
  edges.forEach(({ parent, child }, i) => {
    for (const [end, own, other] of [[0, parent, child], [1, child, parent]]) {
      const [dx, dy] = [boxes[other].x - boxes[own].x, boxes[other].y - boxes[own].y];
      const flat = Math.abs(dx) * boxes[own].halfHeight > Math.abs(dy) * boxes[own].halfWidth;
      const side = flat ? (dx > 0 ? "right" : "left") : dy > 0 ? "below" : "above";
      const key = JSON.stringify([own, side]);
      const slope = flat ? dy / Math.abs(dx) : dx / Math.abs(dy);
      meeting.set(key, [...(meeting.get(key) ?? []), { i, end, flat, slope }]);
    }
  });
  for (const group of meeting.values()) {
    group.sort((a, b) => a.slope - b.slope);
    group.forEach(({ i, end, flat }, place) => {
      const box = ends[i][end];
      const room = flat ? 1.3 * box.halfHeight : 1.3 * box.halfWidth;
      const step = Math.min(flat ? 9 : 16, room / group.length);
      const shift = (place - (group.length - 1) / 2) * step;
      box.aimX = box.x + (flat ? 0 : shift);
      box.aimY = box.y + (flat ? shift : 0);
    });
  }
  return ends;
}

// Boxes are {x, y, halfWidth, halfHeight, aimX, aimY}.
export function route(from, to, others, width, height) {
  const begin = { x: from.aimX, y: from.aimY };
  const end = { x: to.aimX, y: to.aimY };
  let best = null;
  for (const bend of BENDS) {
    const control = {
      x: (begin.x + end.x) / 2 - 2 * bend * (end.y - begin.y),
      y: (begin.y + end.y) / 2 + 2 * bend * (end.x - begin.x),
    };
    const points = curve(begin, control, end);
    const cost = obstacles(points, others, width, height) + 3 * Math.abs(bend);
    if (best === null || cost < best.cost - 1e-9) best = { cost, control, points };
    if (best.cost < 0.05) break;
  }
  return fromRimToRim(begin, end, best, from, to);
}

function curve(a, control, b) {
  return Array.from({ length: POINTS + 1 }, (_, i) => at(a, control, b, i / POINTS));
}

function at(a, control, b, t) {
  const [p, q, r] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
  return { x: p * a.x + q * control.x + r * b.x, y: p * a.y + q * control.y + r * b.y };
}

function obstacles(points, others, width, height) {
  let cost = 0;
  for (const node of others) {
    let nearest = Infinity;
    for (const point of points) {
      const dx = Math.max(Math.abs(point.x - node.x) - node.halfWidth, 0);
      const dy = Math.max(Math.abs(point.y - node.y) - node.halfHeight, 0);
      nearest = Math.min(nearest, Math.hypot(dx, dy));
    }
    cost += 60 * Math.max(0, 1 - nearest / CLEARANCE);
  }
  const out = (p) => Math.max(4 - p.x, p.x - width + 4, 4 - p.y, p.y - height + 4, 0);
  return cost + 1000 * Math.max(...points.map(out));
}

// The part of the parabola between the two rims, again as a quadratic curve.
function fromRimToRim(begin, end, { control }, from, to) {
  const point = (t) => at(begin, control, end, t);
  const first = crossing((t) => inside(point(t), from, 1));
  const last = 1 - crossing((t) => inside(point(1 - t), to, 3));
  const a = point(first);
  const b = point(last);
  const tangent = {
    x: 2 * (1 - first) * (control.x - begin.x) + 2 * first * (end.x - control.x),
    y: 2 * (1 - first) * (control.y - begin.y) + 2 * first * (end.y - control.y),
  };
  const half = (last - first) / 2;
  return { a, control: { x: a.x + half * tangent.x, y: a.y + half * tangent.y }, b };
}

function inside(point, node, air) {
  const flat = Math.max(node.halfWidth - node.halfHeight, 0);
  const beyond = Math.max(Math.abs(point.x - node.x) - flat, 0);
  return Math.hypot(beyond, point.y - node.y) <= node.halfHeight + air;
}

function crossing(isInside) {
  let low = 0;
  let high = 0.5;
  for (let step = 0; step < 24; step += 1) {
    const middle = (low + high) / 2;
    if (isInside(middle)) low = middle;
    else high = middle;
  }
  return high;
}
