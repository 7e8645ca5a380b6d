import { largest, valueAxis, whisker } from "./axes";
import { words } from "./format";
import type { Bars, Data, Stacks } from "./model";
import { cipherDecal, hueOf, lifted, modeColor, strength, type Theme, tooltip } from "./theme";

export function bars(chart: Bars, data: Data, t: Theme, width: number): [number, object] {
  const rows = chart.rows.map((r) => ({ ...r, name: data.contenders[r.c] }));
  const name = Math.min(8 + 7 * Math.max(1, ...rows.map((r) => r.name.length)), width * 0.36);
  const mark = 8 + 6.6 * Math.max(1, ...rows.map((r) => r.mark.length));
  const option = {
    grid: { left: name + 8, right: mark + 8, top: 4, bottom: 44 },
    xAxis: valueAxis(t, chart.x, Math.max(chart.reach ?? 0, largest(rows), ...rows.flatMap((r) => r.rounds)), width, { nameGap: 28 }),
    yAxis: [
      {
        type: "category",
        inverse: true,
        data: rows.map((r) => r.name),
        axisLine: { lineStyle: { color: t.muted } },
        axisTick: { show: false },
        axisLabel: { color: t.ink, fontSize: 12, width: name, overflow: "truncate", interval: 0 },
      },
      {
        type: "category",
        inverse: true,
        data: rows.map((r) => r.mark),
        axisLine: { show: false },
        axisTick: { show: false },
        axisLabel: { color: t.ink, fontSize: 12, interval: 0 },
      },
    ],
    tooltip: {
      trigger: "item",
      ...tooltip(t, (p) => {
        const row = rows[p.seriesType === "scatter" ? p.value[1] : p.dataIndex];
        return [row.name, row.text, ...row.rounds.map((v) => words(v, chart.x.unit))];
      }),
    },
    series: [
      {
        type: "bar",
        barWidth: 13,
        ...lifted,
        data: rows.map((r) => ({ name: r.name, value: r.value, itemStyle: { color: hueOf(t, data, r.c), opacity: strength(data, r.c), decal: cipherDecal(data, r.c, t) } })),
      },
      // An empty series makes the right-hand axis show.
      { type: "bar", yAxisIndex: 1, data: [], silent: true },
      whisker(t.ink, rows.flatMap((r, i) => (r.low === null || r.high === null ? [] : [[i, r.low, r.high]])), false),
      {
        type: "scatter",
        symbolSize: 5,
        z: 5,
        itemStyle: { color: t.ink, opacity: 0.55 },
        // Below the bar, by turns in two lines: neighbours stand apart.
        data: rows.flatMap((r, i) => [...r.rounds].sort((a, b) => a - b).map((v, k) => ({ value: [v, i], symbolOffset: [0, k % 2 ? 15 : 10] }))),
      },
    ],
  };
  return [(rows.some((r) => r.rounds.length > 0) ? 36 : 30) * rows.length + 52, option];
}

// stacks are the parts of a quantity, two bars to a contender: the client's
// above the server's.
export function stacks(chart: Stacks, data: Data, t: Theme, width: number): [number, object] {
  const contenders = [...new Set(chart.stacks.map((s) => s.c))];
  const sides = [...new Set(chart.stacks.map((s) => s.side))];
  const names = contenders.map((c) => data.contenders[c]);
  const of = (c: number, side: string) => chart.stacks.find((s) => s.c === c && s.side === side);
  const sum = (values: (number | null)[]) => values.reduce<number>((a, b) => a + (b ?? 0), 0);
  const name = Math.min(8 + 7 * Math.max(1, ...names.map((n) => n.length)), width * 0.36);
  const option = {
    grid: { left: name + 8, right: 24, top: 28, bottom: 44 },
    legend: { top: 0, left: name, itemHeight: 8, itemWidth: 14, data: chart.parts, textStyle: { color: t.ink, fontSize: 12 } },
    xAxis: valueAxis(t, chart.x, Math.max(...chart.stacks.map((s) => sum(s.values))) || 1, width, { nameGap: 28 }),
    yAxis: {
      type: "category",
      inverse: true,
      data: names,
      axisLine: { lineStyle: { color: t.muted } },
      axisTick: { show: false },
      axisLabel: { color: t.ink, fontSize: 12, width: name, overflow: "truncate", interval: 0 },
    },
    tooltip: {
      trigger: "item",
      ...tooltip(t, (p) => [`${names[p.dataIndex]}, ${p.seriesId.split(" ")[0]}`, `${p.seriesName}: ${words(p.value, chart.x.unit)}`]),
    },
    series: sides.flatMap((side) =>
      chart.parts.map((part, k) => ({
        type: "bar",
        id: `${side} ${k}`,
        name: part,
        stack: side,
        barMaxWidth: 10,
        barGap: "25%",
        itemStyle: { color: modeColor(t, part) },
        data: contenders.map((c) => of(c, side)?.values[k] ?? null),
      })),
    ),
  };
  return [34 * contenders.length + 80, option];
}
