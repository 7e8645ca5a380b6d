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

// Past the palette's end colours come again with another dash.
export function dash(place: number): "solid" | number[] {
  if (place === 0) return [6, 3];
  return ([[], [2, 2], [8, 3, 2, 3]] as number[][])[Math.floor((place - 1) / 8) % 3] || "solid";
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
