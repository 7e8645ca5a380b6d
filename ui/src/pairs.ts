// One figure of each contender under several loads: a row for each contender, from the
// hollow mark of the first load to the full ones of the others, on a logarithmic axis.
import { logAxis, whisker } from "./axes";
import type { Data, Figure, Pairs } from "./model";
import { hollow, hueOf, lifted, nameOf, shapeOf, type Theme, tooltip } from "./theme";

export function pairs(chart: Pairs, data: Data, t: Theme, width: number): [number, object] {
  const names = chart.pairs.map((p) => nameOf(data, p));
  const name = Math.min(8 + 7 * Math.max(1, ...names.map((n) => n.length)), width * 0.36);
  const last = chart.parts.length - 1;
  const marks = chart.pairs.flatMap((p, row) => p.figures.flatMap((f, part) => (f ? [{ f, part, row }] : [])));
  const ends = (f: Figure) => [f.value, f.low ?? f.value, f.high ?? f.value];
  const values = marks.map((m) => m.f.value);
  // A single wild interval must not press all marks together: it runs out of the plot.
  const near = (v: number) => v > Math.min(...values) / 2 && v < 2 * Math.max(...values);
  const x = logAxis(t, marks.flatMap((m) => ends(m.f)).filter(near), chart.x);
  const option = {
    grid: { left: name + 8, right: 28, top: 28, bottom: 44 },
    legend: { top: 0, left: name, itemHeight: 10, itemWidth: 14, selectedMode: false, textStyle: { color: t.ink, fontSize: 12 } },
    xAxis: { ...x, nameGap: 28, axisLabel: { ...x.axisLabel, hideOverlap: true } },
    yAxis: {
      type: "category", inverse: true, data: names,
      axisLine: { lineStyle: { color: t.muted } }, axisTick: { show: false },
      axisLabel: { color: t.ink, fontSize: 12, width: name, overflow: "truncate", interval: 0 },
    },
    tooltip: {
      trigger: "item",
      ...tooltip(t, (p) => [names[p.value[1]], ...chart.pairs[p.value[1]].figures.flatMap((f, part) => (f ? [`${chart.parts[part]}: ${f.text}`] : []))]),
    },
    series: [
      {
        type: "custom", silent: true, z: 1,
        data: chart.pairs.flatMap((p, row) => {
          const known = p.figures.flatMap((f) => (f ? [f.value] : []));
          return known.length > 1 ? [[Math.min(...known), Math.max(...known), row]] : [];
        }),
        encode: { x: [0, 1], y: 2 },
        renderItem: (_: unknown, api: any) => {
          const [a, b] = [0, 1].map((i) => api.coord([api.value(i), api.value(2)]) as [number, number]);
          return { type: "line", shape: { x1: a[0], y1: a[1], x2: b[0], y2: b[1] }, style: { stroke: t.line, lineWidth: 4 } };
        },
      },
      whisker(t.muted, marks.flatMap((m) => (m.f.low === null || m.f.high === null ? [] : [[m.row, m.f.low, m.f.high]])), false),
      ...chart.parts.map((part, k) => ({
        type: "scatter",
        name: part,
        z: 5,
        symbol: k === 0 ? "emptyCircle" : "circle",
        color: t.ink, // of the legend
        symbolSize: 10 + 2 * Math.max(0, k - 1),
        ...lifted,
        data: marks.filter((m) => m.part === k).map((m) => {
          const c = chart.pairs[m.row].c;
          return { name: names[m.row], value: [m.f.value, m.row], symbol: k === 0 ? hollow(shapeOf(data, c)) : shapeOf({ ...data, second: undefined }, c), itemStyle: { color: hueOf(t, data, c), opacity: data.second?.[c] ? 0.5 : k === 0 || k === last ? 1 : 0.6 } };
        }),
      })),
    ],
  };
  return [28 * chart.pairs.length + 76, option];
}
