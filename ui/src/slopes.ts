// What encryption costs: a line for each product over plain text, WireGuard and IPsec.
import { quiet, roundUp } from "./axes";
import { scale, tick, words } from "./format";
import type { Data, Slopes } from "./model";
import { hueOf, nameOf, type Theme, tooltip } from "./theme";

export function slopes(chart: Slopes, data: Data, t: Theme, width: number): [number, object] {
  const most = Math.max(...chart.series.flatMap((s) => s.points.map((p) => p[1]))) || 1;
  const s = scale(most, chart.y.unit);
  const step = s.factor * roundUp(most / s.factor / 5);
  const axis = quiet(t);
  const room = Math.min(14 + 7 * Math.max(...chart.series.map((line) => nameOf(data, line).length)), width * 0.3);
  const option = {
    grid: { left: 64 + room, right: 24, top: 12, bottom: 30 },
    xAxis: { ...axis, type: "category", boundaryGap: false, data: chart.parts, axisLabel: { ...axis.axisLabel, color: t.ink, fontSize: 12 } },
    yAxis: {
      ...axis, type: "value", offset: room, name: `${chart.y.label}, ${s.unit}`, nameLocation: "middle", nameGap: 44,
      min: 0, max: step * Math.ceil(most / step), interval: step, axisLabel: { ...axis.axisLabel, formatter: (v: number) => tick(v / s.factor) },
    },
    tooltip: { trigger: "item", ...tooltip(t, (p) => [p.seriesName, `${chart.parts[p.value[0]]}: ${words(p.value[1], chart.y.unit)}`]) },
    series: chart.series.map((line) => ({
      type: "line",
      name: nameOf(data, line),
      color: hueOf(t, data, line.c),
      symbol: "circle",
      symbolSize: 8,
      lineStyle: { width: 2 },
      emphasis: { focus: "series" },
      labelLayout: { moveOverlap: "shiftY" },
      data: line.points.map((value, i) => ({ value, label: { show: i === 0, position: "left", formatter: "{a}", color: t.ink, fontSize: 12 } })),
    })),
  };
  return [Math.max(280, Math.min(380, width * 0.6)), option];
}
