// The forest plot: ratios to the baseline on a logarithmic axis, with their intervals,
// a line at 1, and a band behind each group.
import { logAxis, whisker } from "./axes";
import type { Data, Forest } from "./model";
import { hueOf, lifted, shapeOf, type Theme, tooltip } from "./theme";

export function forest(chart: Forest, data: Data, t: Theme, width: number): [number, object] {
  const rows = chart.rows.map((r) => ({ ...r, name: data.contenders[r.c] }));
  const name = Math.min(8 + 7 * Math.max(1, ...rows.map((r) => r.name.length)), width * 0.36);
  const ratio = (v: number) => `${Number(v.toPrecision(2))}`;
  // A single wild interval must not press all dots together: it runs out of the plot.
  const values = rows.map((r) => r.value);
  const [least, most] = [Math.min(1, ...values), Math.max(1, ...values)];
  const ends = rows.flatMap((r) => [r.low ?? r.value, r.high ?? r.value]).filter((v) => v > least / 2 && v < most * 2);
  const x = logAxis(t, [1, ...values, ...ends], chart.x);
  const bands = rows.flatMap((r, i) => {
    const group = r.mark.slice(0, 1);
    const shaded = !data.second && group !== "" && (group.charCodeAt(0) - 97) % 2 === 0;
    return shaded ? [[{ yAxis: i - 0.5 }, { yAxis: i + 0.5 }]] : [];
  });
  const option = {
    grid: { left: name + 8, right: 44, top: 4, bottom: 44 },
    xAxis: { ...x, nameGap: 28, axisLabel: { ...x.axisLabel, formatter: ratio } },
    yAxis: [
      {
        type: "value", inverse: true, min: -0.5, max: rows.length - 0.5, interval: 1, show: true,
        axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false },
        axisLabel: { color: t.ink, fontSize: 12, width: name, overflow: "truncate", customValues: rows.map((_, i) => i), formatter: (v: number) => rows[v]?.name ?? "" },
      },
    ],
    tooltip: { trigger: "item", ...tooltip(t, (p) => [rows[p.dataIndex].name, rows[p.dataIndex].text, rows[p.dataIndex].mark ? `group ${rows[p.dataIndex].mark}` : ""].filter(Boolean)) },
    series: [
      whisker(t.muted, rows.flatMap((r, i) => (r.low === null || r.high === null ? [] : [[i, r.low, r.high]])), false),
      {
        type: "scatter",
        z: 5,
        symbolSize: 10,
        ...lifted,
        data: rows.map((r, i) => ({ name: r.name, value: [r.value, i], symbol: shapeOf(data, r.c), itemStyle: { color: hueOf(t, data, r.c) } })),
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: t.ink, width: 1.2, type: "solid" }, data: [{ xAxis: 1 }] },
        markArea: { silent: true, itemStyle: { color: t.muted, opacity: 0.09 }, data: bands },
      },
      {
        type: "custom",
        silent: true,
        data: rows.map((_, i) => [x.max, i]),
        renderItem: (p: { dataIndexInside: number }, api: any) => {
          const [px, py] = api.coord([api.value(0), api.value(1)]);
          return { type: "text", style: { x: px + 8, y: py, text: rows[p.dataIndexInside].mark, fill: t.ink, fontSize: 12, textVerticalAlign: "middle" } };
        },
      },
    ],
  };
  return [26 * rows.length + 52, option];
}
