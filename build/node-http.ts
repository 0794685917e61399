// node:http in the bundle, without the getters that load undici. An `import` of a module of Node's calls all of its getters, so every start of the
// program and of each of its threads computed 30 ms longer.

import http from 'node:http'
import type { Plugin } from 'esbuild'

const NAMES = Object.entries(Object.getOwnPropertyDescriptors(http)).flatMap(([name, { value }]) =>
  value === undefined ? [] : name,
)

export const NODE_HTTP: Plugin = {
  name: 'node:http',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'node:http', namespace: 'node:http' } : undefined,
    )
    onLoad({ filter: /./, namespace: 'node:http' }, () => ({
      contents: `const http = process.getBuiltinModule('node:http')
export default http
export const { ${NAMES.join(', ')} } = http`,
    }))
  },
}
