import { logAxis, quiet, roundUp } from "./axes";
import { nines, words } from "./format";
import type { Axis, Curves, Data, Load, Series } from "./model";
import { panels } from "./panels";
import { dash, hueOf, nameOf, symbolOf, type Theme, tooltip } from "./theme";

// curves are latencies over an axis of nines: 1 is the 90th percentile, 2 the
// 99th, so that the tail has as much room as what leads to it.
export function curves(chart: Curves, data: Data, t: Theme, width: number): [number, object] {
  const place = (percentile: number) => -Math.log10(1 - percentile / 100);
  const points = chart.series.flatMap((s) => s.points);
  const last = Math.ceil(10 * Math.max(1, ...points.map((p) => place(p[0]))) - 1e-6) / 10;
  // The median, then a tick at every nine.
  const ticks = [place(50), ...Array.from({ length: Math.floor(last) }, (_, i) => i + 1)];
  const axis = quiet(t);
  const xAxis = {
    ...axis,
    type: "value",
    name: "percentile",
    nameLocation: "middle",
    nameGap: 28,
    min: 0,
    max: last,
    axisTick: { show: false, customValues: ticks },
    axisLabel: { ...axis.axisLabel, customValues: ticks, formatter: nines },
  };
  const text = (p: [number, number]) => `p${Number(p[0].toPrecision(6))}: ${words(p[1], chart.y.unit)}`;
  const grey = chart.steady ? [[{ xAxis: place(chart.steady) }, { xAxis: last }]] : [];
  return lines(chart.series, (p) => [place(p[0]), p[1]], text, xAxis, chart.y, data, t, width, grey);
}

// load is a latency against the rate that was achieved.
export function load(chart: Load, data: Data, t: Theme, width: number): [number, object] {
  const axis = quiet(t);
  const most = Math.max(1, ...chart.series.flatMap((s) => s.points.map((p) => p[0])));
  const step = roundUp(most / (width < 500 ? 3 : 5));
  const xAxis = {
    ...axis,
    type: "value",
    name: chart.x.label,
    nameLocation: "middle",
    nameGap: 28,
    min: 0,
    max: step * Math.ceil(most / step),
    interval: step,
    axisLabel: { ...axis.axisLabel, formatter: (v: number) => words(v, chart.x.unit) },
  };
  const text = (p: [number, number]) => `${words(p[1], chart.y.unit)} at ${words(p[0], chart.x.unit)}`;
  return lines(chart.series, (p) => p, text, xAxis, chart.y, data, t, width);
}

// shaded greys a part of the plot behind its lines.
function shaded(t: Theme, areas: object[]): object {
  return areas.length > 0 ? { markArea: { silent: true, itemStyle: { color: t.muted, opacity: 0.13 }, data: areas } } : {};
}

// More lines than this are a panel for each.
const crowded = 12;

function lines(
  series: Series[], at: (p: [number, number]) => [number, number], text: (p: [number, number]) => string,
  xAxis: object, y: Axis, data: Data, t: Theme, width: number, grey: object[] = [],
): [number, object] {
  const yAxis = logAxis(t, series.flatMap((s) => s.points.map((p) => p[1])), y);
  if (series.length > crowded) {
    const [height, drawn] = panels(series, at, xAxis, yAxis, data, t, width, shaded(t, grey));
    const of = new Map(series.map((s) => [nameOf(data, s), s]));
    return [height, { ...drawn, tooltip: { trigger: "item", ...tooltip(t, (p) => [p.seriesName, text(of.get(p.seriesName)!.points[p.dataIndex])]) } }];
  }
  const names = series.map((s) => nameOf(data, s));
  // Legend entries wrap as words do; the grid begins below the last row.
  let [legendRows, used] = [1, 0];
  for (const name of names) {
    const entry = 36 + 6.5 * name.length;
    if (used > 0 && used + entry > width - 76) [legendRows, used] = [legendRows + 1, 0];
    used += entry;
  }
  const option = {
    grid: { left: 76, right: 24, top: 8 + 22 * legendRows, bottom: 44 },
    legend: { top: 0, left: 68, itemHeight: 8, itemWidth: 22, textStyle: { color: t.ink, fontSize: 12 } },
    xAxis,
    yAxis,
    tooltip: { trigger: "item", ...tooltip(t, (p) => [p.seriesName, text(series[p.seriesIndex].points[p.dataIndex])]) },
    series: series.map((s, i) => ({
      type: "line",
      triggerLineEvent: true,
      name: names[i],
      color: hueOf(t, data, s.c),
      lineStyle: { width: s.c === 0 ? 2.5 : 1.8, type: dash(data, s.c) },
      symbol: s.name ? "circle" : symbolOf(data, s.c),
      symbolSize: 6,
      z: s.c === 0 ? 3 : 2,
      emphasis: { focus: "series", lineStyle: { width: 3 } },
      data: s.points.map(at),
      ...(i === 0 ? shaded(t, grey) : {}),
    })),
  };
  return [Math.max(300, Math.min(420, width * 0.6)) + 22 * legendRows, option];
}
