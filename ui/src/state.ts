// What is shown, as the address keeps it: #latency?c=host&s=dts. Without c
// all contenders are shown, without s all steps, without g all groups; off names the
// entries of legends that are switched off.
import type { Data } from "./model";

export type Kind = "c" | "s" | "g";
export const kinds: Kind[] = ["c", "s", "g"];

export interface State {
  view: string;
  shown: Record<Kind, Set<number> | null>; // null is all
  off: Set<string>; // entries of legends that a click has switched off
  rest: URLSearchParams; // the choice of a recording: t.c, t.s, t.g, t.round
}

function names(data: Data, kind: Kind): string[] {
  return { c: data.contenders, s: data.steps, g: data.groups }[kind];
}

export function parse(hash: string, data: Data): State {
  const [view, query] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const params = new URLSearchParams(query ?? "");
  const shown: State["shown"] = { c: null, s: null, g: null };
  for (const kind of kinds) {
    const wanted = params.getAll(kind).map((name) => names(data, kind).indexOf(name)).filter((i) => i >= 0);
    if (wanted.length > 0) shown[kind] = new Set(wanted);
    params.delete(kind);
  }
  const off = new Set(params.getAll("off"));
  params.delete("off");
  return { view, shown, off, rest: params };
}

export function format(state: State, data: Data, view = state.view): string {
  const params = new URLSearchParams();
  for (const kind of kinds) for (const i of state.shown[kind] ?? []) params.append(kind, names(data, kind)[i]);
  for (const name of state.off) params.append("off", name);
  for (const [name, value] of state.rest) params.append(name, value);
  const query = params.toString();
  return "#" + view + (query ? "?" + query : "");
}

export function shows(state: State, kind: Kind, place: number): boolean {
  return state.shown[kind]?.has(place) ?? true;
}
