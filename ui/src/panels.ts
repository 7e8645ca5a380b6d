import type { Data, Series } from "./model";
import { dash, homeOf, hueOf, nameOf, symbolOf, type Theme } from "./theme";

// The width that a panel wants, its height, and the room for names and ticks around all.
const [wide, high, gap] = [130, 108, 26];
const room = { left: 76, right: 12, bottom: 44 };

type At = (p: [number, number]) => [number, number];

// panels are small multiples: a panel for each line, over the baseline's and over all
// others as a grey crowd, on axes that they share. It returns their height, and what
// replaces the grid, axes and series of one chart.
export function panels(series: Series[], at: At, xAxis: object, yAxis: object, data: Data, t: Theme, width: number, shaded: object): [number, object] {
  const home = (s: Series) => (s.name ? s.c : homeOf(data, s.c));
  const [base, others] = [series.filter((s) => home(s) === 0), series.filter((s) => home(s) !== 0)];
  // Of two runs, both lines of a contender are in its panel.
  const own = data.same ? others.filter((s, i) => others.findIndex((o) => home(o) === home(s)) === i) : others;
  const beside = (s: Series) => (data.same ? others.filter((o) => home(o) === home(s)) : [s]);
  const title = (s: Series) => (data.same ? nameOf(data, s).slice(0, -" · A".length) : nameOf(data, s));
  const columns = Math.max(2, Math.floor((width - room.left - room.right + gap) / (wide + gap)));
  const rows = Math.ceil(own.length / columns);
  const each = (width - room.left - room.right - (columns - 1) * gap) / columns;
  const named = columns * Math.floor(rows / 2); // has the vertical axis' name, which is higher than a panel
  const crowd = series.flatMap((s) => [...s.points.map(at), null]);
  const line = (s: Series, i: number) => ({
    type: "line",
    triggerLineEvent: true,
    name: nameOf(data, s),
    xAxisIndex: 2 * i,
    yAxisIndex: i,
    color: hueOf(t, data, s.c),
    lineStyle: { width: s.c === 0 ? 1.5 : 1.8, type: dash(data, s.c) },
    symbol: s.name ? "circle" : symbolOf(data, s.c),
    symbolSize: 3,
    z: s.c === 0 ? 2 : 3,
    emphasis: { lineStyle: { width: 3 } },
    data: s.points.map(at),
  });
  const ticks = (xAxis as { axisLabel: object }).axisLabel;
  const sparse = { axisLabel: { ...ticks, hideOverlap: true, alignMinLabel: "left", alignMaxLabel: "right" } };
  const bare = { name: "", axisLabel: { show: false } };
  return [
    rows * (high + gap) + room.bottom,
    {
      grid: own.map((_, i) => ({ outerBoundsMode: "none", left: room.left + (i % columns) * (each + gap), top: gap + Math.floor(i / columns) * (high + gap), width: each, height: high })),
      xAxis: own.flatMap((s, i) => {
        const lowest = i + columns >= own.length;
        return [
          { ...xAxis, gridIndex: i, ...(lowest ? sparse : bare), ...(i % columns > 0 ? { name: "" } : {}) },
          // Holds the panel's title.
          { type: "value", gridIndex: i, position: "top", show: true, axisLine: { show: false }, axisTick: { show: false }, axisLabel: { show: false }, splitLine: { show: false },
            name: title(s), nameLocation: "middle", nameGap: 6, nameTruncate: { maxWidth: each }, nameTextStyle: { color: t.ink, fontSize: 12 } },
        ];
      }),
      yAxis: own.map((_, i) => ({ ...yAxis, gridIndex: i, ...(i % columns > 0 ? bare : {}), ...(i === named ? {} : { name: "" }) })),
      series: own.flatMap((s, i) => [
        { type: "line", silent: true, xAxisIndex: 2 * i, yAxisIndex: i, showSymbol: false, lineStyle: { width: 1, color: t.muted, opacity: 0.25 }, z: 1, data: crowd, ...shaded },
        ...base.map((b) => line(b, i)),
        ...beside(s).map((o) => line(o, i)),
      ]),
    },
  ];
}
