import { largest, logAxis, valueAxis, whisker } from "./axes";
import type { Data, Figure, Scatter } from "./model";
import { hueOf, lifted, shapeOf, type Theme, tooltip } from "./theme";

// From so many points on, or where one lies so many times beyond the middle one, both axes
// are logarithmic: most points would lie together in a corner.
const crowd = 12;
const beyond = 5;

export function scatter(chart: Scatter, data: Data, t: Theme, width: number): [number, object] {
  const points = chart.points.map((p) => ({ ...p, name: data.contenders[p.c] }));
  const intervals = (axis: "x" | "y") =>
    points.flatMap((p) => {
      const across: Figure = p[axis === "x" ? "y" : "x"];
      const along: Figure = p[axis];
      return along.low === null || along.high === null ? [] : [[across.value, along.low, along.high]];
    });
  const far = (axis: "x" | "y") => {
    const values = points.map((p) => p[axis].value).sort((a, b) => a - b);
    return values[values.length - 1] > beyond * values[values.length >> 1];
  };
  const dense = (points.length >= crowd || far("x") || far("y")) && points.every((p) => p.x.value > 0 && p.y.value > 0);
  const height = Math.max(300, Math.min(dense ? 560 : 420, width * 0.6));
  const grid = { left: dense ? 76 : 60, right: 24, top: 16, bottom: 44 };
  // One wide interval must not press all points into a corner: it runs out of
  // the plot instead, without a cap.
  const extent = (figures: Figure[]) => Math.min(largest(figures), 2.5 * Math.max(...figures.map((f) => f.value)) || Infinity);
  const below = (figures: Figure[]) => Math.min(0, ...figures.map((f) => f.value));
  const x = dense ? { ...logAxis(t, points.map((p) => p.x.value), chart.x), nameGap: 28 } : valueAxis(t, chart.x, extent(points.map((p) => p.x)), width, { nameGap: 28 }, below(points.map((p) => p.x)));
  const y = dense ? logAxis(t, points.map((p) => p.y.value), chart.y) : valueAxis(t, chart.y, extent(points.map((p) => p.y)), 500, { nameGap: 40 }, below(points.map((p) => p.y)));
  const share = (axis: { min: number; max: number }, v: number) => (dense ? Math.log(v / axis.min) / Math.log(axis.max / axis.min) : (v - axis.min) / (axis.max - axis.min));
  const across = (v: number) => grid.left + (width - grid.left - grid.right) * share(x, v);
  const up = (v: number) => height - grid.bottom - (height - grid.top - grid.bottom) * share(y, v);
  const bars: Box[] = [
    ...intervals("y").map(([at, low, high]) => ({ left: across(at) - 1, right: across(at) + 1, top: up(high), bottom: up(low) })),
    ...intervals("x").map(([at, low, high]) => ({ left: across(low), right: across(high), top: up(at) - 1, bottom: up(at) + 1 })),
  ];
  const places = placeLabels(
    points.map((p) => ({ x: across(p.x.value), y: up(p.y.value), width: textWidth(p.name) })),
    bars,
    { left: grid.left + 2, right: width - 4, top: 2, bottom: height - grid.bottom - 2 },
  );
  // Who has no room for a name has a number, and a line of the key below.
  const numbered = points.flatMap((p, i) => (places[i].numbered ? [{ ...p, i }] : []));
  const number = new Map(numbered.map((p, k) => [p.i, String(k + 1)]));
  const key = numbered.map((p) => `${number.get(p.i)} ${p.name}`);
  const keyRows = rowsOf(key, width);
  const look = (p: (typeof points)[number]) => ({
    symbol: shapeOf(data, p.c),
    itemStyle: { color: hueOf(t, data, p.c) },
  });
  const option = {
    grid: { ...grid, bottom: grid.bottom + 19 * keyRows },
    legend: { show: key.length > 0, data: key, bottom: 0, left: 0, itemHeight: 10, itemWidth: 14, selectedMode: false, textStyle: { color: t.ink, fontSize: 12, width: keyWidth, overflow: "truncate" } },
    xAxis: x,
    yAxis: y,
    tooltip: { trigger: "item", ...tooltip(t, (p) => [points[p.dataIndex].name, `${chart.x.label}: ${points[p.dataIndex].x.text}`, `${chart.y.label}: ${points[p.dataIndex].y.text}`]) },
    series: [
      whisker(t.muted, intervals("y"), true),
      whisker(t.muted, intervals("x"), false),
      {
        type: "line",
        silent: true,
        symbol: "none",
        z: 3,
        lineStyle: { color: t.accent, width: 1.5, type: [6, 4] },
        data: (data.second ? [] : points).filter((p) => p.frontier).map((p) => [p.x.value, p.y.value]).sort((a, b) => a[0] - b[0]),
      },
      {
        type: "scatter",
        z: 5,
        symbolSize: 11,
        ...lifted,
        data: points.map((p, i) => ({
          name: p.name,
          value: [p.x.value, p.y.value],
          ...look(p),
          label: {
            show: true,
            position: "inside",
            formatter: () => number.get(i) ?? p.name,
            color: t.ink,
            fontSize: 12,
            textBorderColor: t.paper,
            textBorderWidth: 3,
            backgroundColor: t.paper,
            padding: [0, 1],
            offset: places[i].offset,
          },
        })),
      },
      leaders(t.muted, points.flatMap((p, i) => {
        const to = places[i].leader;
        return to ? [{ at: [p.x.value, p.y.value], to }] : [];
      })),
      ...numbered.map((p, k) => ({ type: "scatter", name: key[k], data: [], ...look(p) })),
    ],
  };
  return [height + 19 * keyRows, option];
}

const keyWidth = 200;

// rowsOf is how many rows the key takes, which wraps as words do.
function rowsOf(key: string[], width: number): number {
  let [rows, used] = [0, Infinity];
  for (const words of key) {
    const entry = 30 + Math.min(keyWidth, textWidth(words));
    if (used + entry > width - 12) [rows, used] = [rows + 1, 0];
    used += entry;
  }
  return rows;
}

let pen: CanvasRenderingContext2D | null = null;

function textWidth(text: string): number {
  pen ??= document.createElement("canvas").getContext("2d")!;
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// leaders are lines from points to their names; to is in pixels from the point.
function leaders(color: string, lines: { at: number[]; to: number[] }[]) {
  return {
    type: "custom",
    silent: true,
    z: 4,
    data: lines.map((l) => l.at),
    renderItem: (p: { dataIndexInside: number }, api: any) => {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const [dx, dy] = lines[p.dataIndexInside].to;
      return { type: "line", shape: { x1: x, y1: y, x2: x + dx, y2: y + dy }, style: { stroke: color, lineWidth: 1, fill: undefined } };
    },
  };
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface Place {
  offset: [number, number]; // of the name's middle from its point
  leader?: [number, number]; // where the line to the name ends, likewise
  numbered?: boolean; // a number stands for the name
}

type Point = { x: number; y: number; width: number };

// placeLabels tries with names alone, with names and numbers, with numbers
// alone, from the left and from the right, until no label is left on its point. At first no
// name may lie on an interval's bar; where the bars leave no room, names lie above them.
function placeLabels(points: Point[], bars: Box[], room: Box): Place[] {
  const stuck = (places: Place[]) => places.filter((p) => p.offset[0] === 0 && p.offset[1] === 0).length;
  let best: Place[] | null = null;
  const named = (avoid: Box[]): [boolean, boolean, Box[]] => [true, true, avoid];
  for (const [near, far, avoid] of [named(bars), named([]), [true, false, []], [false, false, []]] as [boolean, boolean, Box[]][]) {
    for (const side of [1, -1]) {
      const order = [...points.keys()].sort((a, b) => side * (points[a].x - points[b].x));
      const places = attempt(points, order, room, near, far, avoid);
      if (avoid.length > 0 && places.some((p) => p.numbered)) continue;
      if (!best || stuck(places) < stuck(best)) best = places;
      if (stuck(best) === 0) return best;
    }
  }
  return best!;
}

// attempt puts names beside their points where there is room and no other
// point is nearer, else farther off with a line to them; where there is no room
// for that either, a number. Without near and far it has numbers only.
function attempt(points: Point[], order: number[], room: Box, near: boolean, far: boolean, avoid: Box[]): Place[] {
  const [gap, line, dot, digits] = [9, 14, 6, 16];
  const taken: Box[] = points.map((p) => around(p.x, p.y, 2 * dot, 2 * dot));
  const clear = (b: Box) => avoid.every((o) => b.right <= o.left || o.right <= b.left || b.bottom <= o.top || o.bottom <= b.top);
  const free = (b: Box) =>
    b.left >= room.left && b.right <= room.right && b.top >= room.top && b.bottom <= room.bottom &&
    taken.every((o) => b.right <= o.left || o.right <= b.left || b.bottom <= o.top || o.bottom <= b.top);
  const beside = (p: Point, width: number): Place | null => {
    const side = gap + width / 2;
    for (const [dx, dy] of [[side, 0], [-side, 0], [0, -line], [0, line], [side, 4 - line], [side, line - 4], [-side, 4 - line], [-side, line - 4]]) {
      const box = around(p.x + dx, p.y + dy, width, line);
      const own = distance(p, box);
      if (!free(box) || !clear(box) || points.some((o) => o !== p && distance(o, box) < own + 3)) continue;
      taken.push(box);
      return { offset: [dx, dy] };
    }
    return null;
  };
  const away = (p: Point, width: number): Place | null => {
    for (let radius = 24; radius <= 112; radius += 11) {
      for (let k = 0; k < 16; k++) {
        const angle = (Math.PI / 8) * (k + 0.5);
        const [ax, ay] = [radius * Math.cos(angle), -radius * Math.sin(angle)];
        const dx = ax + Math.sign(ax) * (width / 2);
        const box = around(p.x + dx, p.y + ay, width, line);
        const way: Box[] = [];
        for (let d = 2 * dot + 2; d < radius; d += 4) way.push(around(p.x + (d / radius) * ax, p.y + (d / radius) * ay, 2, 2));
        if (!free(box) || !clear(box) || !way.every(free)) continue;
        taken.push(box, ...way);
        return { offset: [dx, ay], leader: [ax, ay] };
      }
    }
    return null;
  };
  const places: (Place | null)[] = points.map(() => null);
  for (const i of order) places[i] = near ? beside(points[i], points[i].width) : null;
  // Lines come last: they must find their way between the names.
  for (const i of order) if (far) places[i] ??= away(points[i], points[i].width);
  for (const i of order) places[i] ??= { ...(away(points[i], digits) ?? { offset: [0, 0] }), numbered: true };
  return places as Place[];
}

function around(x: number, y: number, width: number, height: number): Box {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

function distance(p: { x: number; y: number }, b: Box): number {
  return Math.hypot(Math.max(b.left - p.x, 0, p.x - b.right), Math.max(b.top - p.y, 0, p.y - b.bottom));
}
