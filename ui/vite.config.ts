// Builds the one script of the HTML report and the notices that go with it.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const out = "../internal/report/assets";
const read = (file: string) => readFileSync(`node_modules/${file}`, "utf8").replaceAll("\r\n", "\n").trim();
const version = (name: string) => JSON.parse(read(`${name}/package.json`)).version;

// Every copy of a report carries the bundle, so the short notices travel in
// it; the long Apache licence is a file beside it.
const short = [
  `Apache ECharts ${version("echarts")}, Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0)\n${read("echarts/NOTICE")}`,
  `zrender ${version("zrender")}\n${read("zrender/LICENSE")}`,
  `d3, parts in ECharts\n${read("echarts/licenses/LICENSE-d3")}`,
  `tslib ${version("tslib")}\n${read("tslib/LICENSE.txt")}`,
];
const rule = `\n\n${"-".repeat(72)}\n\n`;

// What the bundle was built from; TestBundleIsCurrent hashes the same files,
// so that it can be checked where there is no npm.
function source(): string {
  const files = ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", ...readdirSync("src").map((f) => `src/${f}`)].sort();
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}

const notices: Plugin = {
  name: "notices",
  generateBundle: {
    order: "post",
    handler(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type === "chunk") chunk.code = `/*!\nBuilt by ui/ from ${source()}\n\n${short.join(rule)}\n*/\n${chunk.code}`;
      }
    },
  },
  closeBundle: () => writeFileSync(`${out}/NOTICES.txt`, [...short, `Apache ECharts\n${read("echarts/LICENSE")}`].join(rule) + "\n"),
};

export default defineConfig({
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [notices],
  build: {
    outDir: out,
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "src/main.ts", formats: ["iife"], name: "cnibench", fileName: () => "charts.js" },
  },
});
