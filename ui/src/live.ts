// A page that is served asks its own address, every two seconds while it is
// looked at, whether the run has gone on, and then takes over the new content.
const pause = 2000;
const parts = ["header", "nav.views", "#filter", "main", "#data", "#trace-data"];

export function follow(renewed: () => Promise<void>): void {
  let known = document.body.dataset.live;
  // current takes news over, and says whether what is shown is what there is.
  const current = async () => {
    const head = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
    if (head.ok && head.headers.get("ETag") === known) return true;
    // After a fault, too: only who asks for the whole lets the server try again.
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) return false;
    const tag = answer.headers.get("ETag") ?? known;
    if (tag !== known) {
      await replace(new DOMParser().parseFromString(await answer.text(), "text/html"), renewed);
      known = tag;
    }
    return true;
  };
  const ask = async () => {
    if (!document.hidden) {
      try {
        say((await current()) ? "" : "the run can't be read at the moment: this is what it showed last");
      } catch {
        say("cnibench explore has ended: this is what it showed last");
      }
    }
    setTimeout(ask, pause);
  };
  const say = (text: string) => {
    const now = document.getElementById("live")!;
    if (now.textContent !== text) now.textContent = text;
  };
  setTimeout(ask, pause);
}

// replace takes the new content over and keeps what the reader has opened and
// the focus, of what the script makes of the content as well.
async function replace(next: Document, renewed: () => Promise<void>): Promise<void> {
  const name = (d: Element) => {
    const chart = d.parentElement?.querySelector(".chart");
    return d.id || `${d.closest("[id]")?.id} ${chart?.id || chart?.ariaLabel} ${d.querySelector("summary")?.textContent}`;
  };
  const open = new Set([...document.querySelectorAll("details[open]")].map(name));
  const focus = document.activeElement?.id;
  const top = scrollY;
  for (const part of parts) {
    const [from, to] = [next.querySelector(part), document.querySelector(part)];
    if (from && to) to.replaceWith(document.adoptNode(from));
  }
  await renewed();
  for (const d of document.querySelectorAll("details")) if (open.has(name(d))) d.open = true;
  if (focus) document.getElementById(focus)?.focus();
  scrollTo({ top });
}
