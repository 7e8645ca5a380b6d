// The page's data as internal/report writes it (page_data.go, charts.go,
// page_traces.go): figures are chosen, ordered and put into words there; here
// they are drawn, filtered and exported. Contenders, steps and groups are
// places in the lists of names; a contender's place is its colour, and the
// baseline's is 0.

export interface Data {
  run: string;
  contenders: string[];
  hues: number[]; // of the contenders' families; 0 is the baseline's
  ciphers: number[]; // 0 in plain text, 1 with WireGuard, 2 with another encryption
  steps: string[];
  groups: string[];
  charts: Chart[];
  metrics: string[];
  results: ResultRow[];
  decision?: Decision;
  // Of two runs over each other: whether a contender is of the second, and the place of the
  // same contender of the first, or else its own.
  second?: boolean[];
  same?: number[];
}

export type Chart = Bars | Curves | Forest | Load | Pairs | Scatter | Slopes | Stacks;

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

interface Of {
  c: number;
}

export interface Bars {
  id: string;
  kind: "bars";
  x: Axis;
  reach?: number; // of the axis, so that charts beside each other have one scale
  rows: (Of & Figure & { mark: string; rounds: number[] })[];
}

// A line of a contender, or of something else that has a name of its own.
export type Series = Of & { name?: string; points: [number, number][] };

export interface Curves {
  id: string;
  kind: "curves";
  y: Axis;
  steady?: number; // the percentile beyond which the rounds differ too much to compare
  series: Series[]; // points are percentile and seconds
}

// Ratios to the baseline, one to a row.
export interface Forest {
  id: string;
  kind: "forest";
  x: Axis;
  rows: (Of & Figure & { mark: string; rounds: number[] })[];
}

// Lines over a few named places.
export interface Slopes {
  id: string;
  kind: "slopes";
  x: Axis;
  y: Axis;
  parts: string[];
  series: Series[]; // points are a part's place and a value
}

export interface Load {
  id: string;
  kind: "load";
  x: Axis;
  y: Axis;
  series: Series[];
}

// A figure of each contender at every part; null where it has none.
export interface Pairs {
  id: string;
  kind: "pairs";
  x: Axis;
  parts: string[];
  pairs: (Of & { name?: string; figures: (Figure | null)[] })[];
}

export interface Scatter {
  id: string;
  kind: "scatter";
  x: Axis;
  y: Axis;
  points: (Of & { x: Figure; y: Figure; frontier?: boolean })[];
}

export interface Stacks {
  id: string;
  kind: "stacks";
  x: Axis;
  parts: string[];
  stacks: (Of & { side: string; values: (number | null)[] })[];
}

// group, step, contender, metric, rounds, requests, value, interval, against
// the baseline, p, letters of groups, standing
export type ResultRow = [number, number, number, number, number, string, string, string, string, string, string, string];

export interface Decision {
  questions: { take: number; words: string }[];
  else: number;
}

export interface Traces {
  note: string;
  list: Trace[];
}

export interface Trace {
  g: number;
  s: number;
  c: number;
  round: number;
  nodes: Node[];
}

type Values = (number | null)[];

export interface Node {
  node: string;
  window: number;
  measured?: number; // seconds of the window that are the sample's own slices
  times: number[];
  cpu?: Record<string, Values>;
  loads?: Record<string, Values>; // by CPU; many CPUs have their busiest alone
  busiest?: Values;
  receive?: Values;
  transmit?: Values;
  retransmits?: Values;
  memory?: Values;
}
