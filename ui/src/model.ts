// The page's data as internal/report/charts.go writes it: figures are chosen,
// ordered and put into words there; here they are only drawn.

export interface Page {
  charts: Chart[];
}

export type Chart = Bars | Curves | Scatter;

export interface Axis {
  label: string;
  unit: string;
}

// One figure of a contender. low and high are null where there were too few
// rounds for an interval.
export interface Figure {
  value: number;
  low: number | null;
  high: number | null;
  text: string; // value and interval in words
}

interface Named {
  name: string;
  color: number; // place in the palette; 0 is the baseline's
}

export interface Bars {
  id: string;
  kind: "bars";
  x: Axis;
  rows: (Named & Figure & { mark: string; rounds: number[]; roundTexts: string[] })[];
}

export interface Curves {
  id: string;
  kind: "curves";
  y: Axis;
  // nines is log10(1/(1-p)): 1 is the 90th percentile, 2 the 99th.
  series: (Named & { points: { nines: number; value: number; text: string }[] })[];
}

export interface Scatter {
  id: string;
  kind: "scatter";
  x: Axis;
  y: Axis;
  points: (Named & { x: Figure; y: Figure })[];
}
