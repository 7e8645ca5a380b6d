// Axis ticks only: every figure comes with its words from Go.

const decimal: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const binary: [number, string][] = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]];

export function tick(value: number, unit: string): string {
  if (value === 0) return "0";
  const size = Math.abs(value) * (1 + 1e-9);
  const steps = unit === "bytes" ? binary : decimal;
  const [factor, prefix] = steps.find(([f]) => size >= f) ?? steps[steps.length - 1];
  const number = String(Number((value / factor).toPrecision(3)));
  const symbol = { "bytes": "B", "bit/s": "bit/s", "s": "s", "1/s": "/s", "CPU-s/Gbit": "CPU" }[unit] ?? "";
  return symbol || prefix ? `${number} ${prefix}${symbol}` : number;
}

// nines names a whole place of the percentile axis: 0, 90 %, 99 %, 99.9 %.
export function nines(place: number): string {
  if (place <= 0) return "0";
  return place === 1 ? "90 %" : place === 2 ? "99 %" : `99.${"9".repeat(Math.round(place) - 2)} %`;
}
