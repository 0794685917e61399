// The documentation as a site: the pages under docs/ as they are, with a sidebar and a search that runs in the browser.

import { resolve } from 'node:path'
import process from 'node:process'
import { defineConfig } from 'vitepress'
import { anchorOf } from './anchors.ts'
import { rewriteOutsideLinks } from './outside-links.ts'
import { sidebar } from './pages.ts'

const DOCS = resolve(import.meta.dirname, '..')
/** Vite's default includes browsers of 2020, for which the esbuild of this repository cannot rewrite destructuring. */
const TARGET = 'es2022'

export default defineConfig({
  title: 'Portcullis',
  description: 'Kubernetes-aware layer-7 API gateway for kube-apiservers',
  lang: 'en',
  outDir: '../dist-docs',
  cacheDir: '../node_modules/.cache/vitepress',
  vite: {
    // The largest chunk is the index of the search, which is loaded when a reader searches.
    build: { target: TARGET, chunkSizeWarningLimit: 2000 },
    optimizeDeps: { esbuildOptions: { target: TARGET } },
  },
  markdown: {
    anchor: { slugify: anchorOf },
    config: (md) => rewriteOutsideLinks(md, process.env['DOCS_FILES_URL'] ?? ''),
  },
  themeConfig: {
    sidebar: sidebar(DOCS),
    outline: [2, 3],
    search: { provider: 'local' },
  },
})
