import type { Data } from "./model";

// The palette lives in the style sheet, where light, dark and print differ.
export interface Theme {
  ink: string;
  muted: string;
  line: string;
  paper: string;
  accent: string;
  series: string[]; // 0 is the baseline's
}

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const series = Array.from({ length: 9 }, (_, i) => color(`--series-${i}`));
  return { ink: color("--ink"), muted: color("--muted"), line: color("--line"), paper: color("--paper"), accent: color("--accent"), series };
}

export function seriesColor(t: Theme, place: number): string {
  return place === 0 ? t.series[0] : t.series[1 + ((place - 1) % (t.series.length - 1))];
}

// hueOf is a contender's colour: that of its family, so that the configurations of one
// product look related.
export function hueOf(t: Theme, data: Data, c: number): string {
  return seriesColor(t, data.hues[c] ?? c);
}

// lifted greys the others of a series of bars or dots while the pointer is on one.
export const lifted = { emphasis: { focus: "self", blurScope: "series" }, blur: { itemStyle: { opacity: 0.2 }, label: { opacity: 0.2 } } };

// Modes of the CPU have one colour each, wherever they are drawn.
export const modes = ["softirq", "irq", "system", "user", "nice", "iowait", "steal"];

export function modeColor(t: Theme, mode: string): string {
  const place = modes.indexOf(mode);
  return seriesColor(t, place < 0 ? modes.length + 1 : place + 1);
}

// Lines and shapes tell encryption, which hues do not.
export function dash(data: Data, c: number): "solid" | number[] {
  if (data.second) return data.second[c] ? [4, 4] : "solid";
  if (c === 0) return [6, 3];
  return data.ciphers[c] === 1 ? [2, 2] : data.ciphers[c] === 2 ? [8, 3, 2, 3] : "solid";
}

export function shapeOf(data: Data, c: number): string {
  const shape = ["circle", "triangle", "diamond"][data.ciphers[c] ?? 0] ?? "circle";
  return data.second?.[c] ? hollow(shape) : shape;
}

export function hollow(shape: string): string {
  return shape.startsWith("empty") ? shape : `empty${shape[0].toUpperCase()}${shape.slice(1)}`;
}

// strength is the opacity of a bar: less for the second of two runs.
export function strength(data: Data, c: number): number {
  return data.second?.[c] ? 0.3 : 0.7;
}

// homeOf is the contender that a line belongs to: of two runs, the one of the first.
export function homeOf(data: Data, c: number): number {
  return data.same?.[c] ?? c;
}

// symbolOf tells the contenders of one family apart on lines, which share its hue.
export function symbolOf(data: Data, c: number): string {
  const member = data.hues.slice(0, c).filter((hue, i) => hue === data.hues[c] && data.ciphers[i] === data.ciphers[c]).length;
  return ["circle", "emptyRect", "triangle", "emptyDiamond", "rect", "emptyCircle", "diamond", "emptyTriangle"][member % 8];
}

// cipherDecal is a pattern for bars of encrypted contenders.
export function cipherDecal(data: Data, c: number, t: Theme): object | undefined {
  const kind = data.ciphers[c];
  if (!kind) return undefined;
  return { symbol: "rect", color: t.paper, dashArrayX: [1, 0], dashArrayY: kind === 1 ? [2, 5] : [4, 4], rotation: kind === 1 ? Math.PI / 4 : -Math.PI / 4 };
}

// tooltip builds elements, never markup: names in it come from files.
export function tooltip(t: Theme, lines: (params: any) => string[]) {
  return {
    confine: true,
    backgroundColor: t.paper,
    borderColor: t.line,
    textStyle: { color: t.ink, fontSize: 12 },
    formatter: (params: any) => {
      const box = document.createElement("div");
      lines(params).forEach((line, i) => {
        const row = document.createElement(i === 0 ? "strong" : "div");
        row.textContent = line;
        box.append(row);
      });
      return box;
    },
  };
}

// nameOf is the contender's or the line's own name.
export function nameOf(data: Data, of: { c: number; name?: string }): string {
  return of.name ?? data.contenders[of.c];
}
