// Builds the page into the package. The same sources give the same bytes: names without hashes, no dates, no paths.
import { defineConfig } from "vite";
import { manifest } from "./manifest.js";

const OUT = process.env.TENURE_WEB_OUT ?? "../src/tenure/dashboard/web/static";

export default defineConfig({
  base: "/",
  publicDir: false,
  plugins: [manifest()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    sourcemap: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/page.js",
        assetFileNames: "assets/page[extname]",
        codeSplitting: false,
      },
    },
  },
});
