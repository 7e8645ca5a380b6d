// Hides what the filter leaves out. Whatever is of a contender, step or group
// says so in data-c, data-s or data-g; of several steps, one that is shown is
// enough.
import { make } from "./dom";
import type { Data } from "./model";
import { type Kind, kinds, shows, type State } from "./state";

const plurals: Record<Kind, string> = { c: "contenders", s: "steps", g: "kernels" };

export function hide(state: State): void {
  for (const element of document.querySelectorAll<HTMLElement>("main [data-c], main [data-s], main [data-g]")) {
    element.hidden = !kinds.every((kind) => {
      const of = element.dataset[kind];
      return of === undefined || of === "" || of.split(" ").some((place) => shows(state, kind, Number(place)));
    });
  }
}

// setUp makes the boxes work; change gets the new sets.
export function setUp(data: Data, change: (shown: State["shown"]) => void): void {
  const filter = document.getElementById("filter") as HTMLDetailsElement;
  filter.hidden = data.contenders.length === 0;
  document.getElementById("filter-state")!.role = "status";
  const read = () => {
    const shown: State["shown"] = { c: null, s: null, g: null };
    for (const kind of kinds) {
      const list = boxes(filter, kind);
      const on = list.filter((b) => b.checked).map((b) => Number(b.value));
      if (list.length > 0 && on.length === 0) return say(`: choose at least one of the ${plurals[kind]}`);
      shown[kind] = on.length === list.length ? null : new Set(on);
    }
    change(shown);
  };
  filter.addEventListener("change", read);
  quick(filter, data, read);
  for (const set of filter.querySelectorAll("fieldset")) {
    const kind = set.querySelector("input")?.name as Kind | undefined;
    if (!kind) continue;
    for (const [text, on] of [["all", true], ["none", false]] as const) {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        for (const b of boxes(filter, kind)) b.checked = on;
        read(); // none is where a choice begins: what was shown stays
      });
      set.querySelector("legend")!.append(" ", button);
    }
  }
}

// quick are a search by name and the encrypted contenders in one click.
function quick(filter: HTMLElement, data: Data, read: () => void): void {
  if (filter.querySelector(".search")) return;
  const input = make("input", { type: "search", name: "" });
  const only = (is: (place: number) => boolean) => {
    for (const b of boxes(filter, "c")) b.checked = Number(b.value) === 0 || is(Number(b.value));
    read();
  };
  input.addEventListener("input", () => only((c) => data.contenders[c].includes(input.value.trim())));
  input.addEventListener("change", (e) => e.stopPropagation());
  const bar = make("p", { class: "search" }, make("label", {}, "Name contains ", input));
  for (const [text, is] of [["only encrypted", (c: number) => data.ciphers[c] > 0], ["only plain", (c: number) => data.ciphers[c] === 0]] as const) {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => only(is));
    bar.append(button);
  }
  filter.querySelector("summary")!.after(bar);
}

function boxes(filter: HTMLElement, kind: Kind): HTMLInputElement[] {
  return [...filter.querySelectorAll<HTMLInputElement>(`input[name="${kind}"]`)];
}

// show sets the boxes to the state and says in words what is left out.
export function show(state: State): void {
  const filter = document.getElementById("filter")!;
  const parts: string[] = [];
  for (const kind of kinds) {
    const list = boxes(filter, kind);
    for (const b of list) b.checked = shows(state, kind, Number(b.value));
    if (state.shown[kind]) parts.push(`${state.shown[kind].size} of ${list.length} ${plurals[kind]}`);
  }
  say(parts.length > 0 ? ": " + parts.join(", ") : "");
}

function say(text: string): void {
  document.getElementById("filter-state")!.textContent = text;
}
