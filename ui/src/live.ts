// A page that is served asks its own address, every two seconds while it is
// looked at, whether the run has gone on, and then takes over the new content.
const pause = 2000;
const parts = ["header", "nav.views", "#filter", "main", "#data", "#trace-data"];

export function follow(renewed: () => void): void {
  const status = document.getElementById("live")!;
  let known = document.body.dataset.live;
  const ask = async () => {
    if (!document.hidden) {
      try {
        const head = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
        const tag = head.headers.get("ETag") ?? "";
        if (head.ok && tag !== known) {
          const answer = await fetch(location.pathname, { cache: "no-store" });
          if (answer.ok) {
            known = answer.headers.get("ETag") ?? tag;
            replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
            renewed();
          }
        }
        say(head.ok ? "" : "the run can't be read at the moment");
      } catch {
        say("cnibench explore has ended: this is what it showed last");
      }
    }
    setTimeout(ask, pause);
  };
  const say = (text: string) => {
    const now = document.getElementById("live") ?? status;
    if (now.textContent !== text) now.textContent = text;
  };
  setTimeout(ask, pause);
}

// replace takes the new content over and keeps what the reader has opened, the
// room of what is drawn, and the focus.
function replace(next: Document): void {
  const name = (d: Element) => `${d.closest("[id]")?.id} ${d.parentElement?.querySelector(".chart")?.id ?? ""} ${d.querySelector("summary")?.textContent}`;
  const open = new Set([...document.querySelectorAll("details[open]")].map(name));
  const focus = document.activeElement?.id;
  const top = scrollY;
  for (const part of parts) {
    const [from, to] = [next.querySelector(part), document.querySelector(part)];
    if (from && to) to.replaceWith(document.adoptNode(from));
  }
  for (const d of document.querySelectorAll("details")) if (open.has(name(d))) d.open = true;
  if (focus) document.getElementById(focus)?.focus();
  scrollTo({ top });
}
