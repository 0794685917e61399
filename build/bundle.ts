// The program bundled by esbuild (decision 22): as `npm run build` packs it, and as tests start it.

import { resolve } from 'node:path'
import type { BuildOptions } from 'esbuild'
import { NODE_HTTP } from './node-http.ts'

const ROOT = resolve(import.meta.dirname, '..')
/** Modules that are started or loaded by their path (PROGRAM_FILES); their names stand there, too. */
const ENTRY_POINTS = {
  main: 'src/main.ts',
  'gateway-thread': 'src/program/threads/thread/entry.ts',
  // Only the part of the package that reads kubeconfigs; its index loads the types of the whole API.
  'client-node': '@kubernetes/client-node/dist/config.js',
} as const
/** Packages in CommonJS call `require` for Node's modules; ES modules have none. */
const REQUIRE = `import { createRequire as createRequireOfBundle } from 'node:module'
const require = createRequireOfBundle(import.meta.url)`

/** Without `outdir`. */
export const BUNDLE_OPTIONS = {
  absWorkingDir: ROOT,
  entryPoints: ENTRY_POINTS,
  outExtension: { '.js': '.mjs' },
  // All in one folder: PROGRAM_FILES goes by it.
  chunkNames: '[name]-[hash]',
  bundle: true,
  // What a command does not need is in a file that it does not read.
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Not those of the type checker, which an image is built without.
  tsconfigRaw: {},
  banner: { js: REQUIRE },
  plugins: [NODE_HTTP],
  sourcemap: 'linked',
  sourcesContent: true,
  // node_modules may be a link; its packages are still named from here.
  preserveSymlinks: true,
  metafile: true,
  logLevel: 'warning',
  logOverride: { 'direct-eval': 'error' },
} as const satisfies BuildOptions
