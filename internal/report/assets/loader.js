// The page carries its script and its data as gzip in base64, a third of their size.
// This unpacks the script and starts it; the policy knows both by their hashes.

// A test or a reader without developer tools sees what went wrong in the page
// itself: <html data-errors="…">.
function note(message) {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors ? root.dataset.errors + "\n" : "") + message;
}
addEventListener("error", (e) => note(e.message || "error"));
addEventListener("unhandledrejection", (e) => note(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) => note(`blocked: ${e.violatedDirective} ${e.blockedURI}`));

globalThis.unpack = async (id) => {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
unpack("bundle").then(
  (code) => {
    const script = document.createElement("script");
    script.textContent = code;
    document.body.append(script);
  },
  (reason) => {
    note(`the charts can't be unpacked: ${reason}`);
    document.getElementById("unpacked").textContent =
      "This browser can't unpack the charts, which Chromium 80, Firefox 113 and Safari 16.4 and later can. The tables of all views are below, one after the other.";
  },
);
