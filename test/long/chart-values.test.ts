// Each value of the chart has an effect: changed alone, something else is rendered.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { VALUES } from '../../build/chart/values.ts'
import { type Group, isGroup, type Value } from '../../build/chart/values-table.ts'
import { API_VERSIONS, template } from '../harness/install/helm.ts'

const VALUES_DIR = resolve(import.meta.dirname, '../chart/values')
const folder = mkdtempSync(join(tmpdir(), 'portcullis-values-'))

after(() => rmSync(folder, { recursive: true, force: true }))

type Tree = { [name: string]: unknown }

/** What a value may need beside it. */
const CONTEXTS: readonly Tree[] = [
  {},
  parse(readFileSync(join(VALUES_DIR, 'everything.yaml'), 'utf8')),
  parse(readFileSync(join(VALUES_DIR, 'embedded-everything.yaml'), 'utf8')),
  { shape: 'embedded' },
  { service: { type: 'LoadBalancer' }, serviceAccount: { create: false } },
  { metrics: { podMonitor: { enabled: true }, tokenSecret: { name: 'x' } }, redis: { url: 'redis://redis' } },
  {
    metrics: { tokenSecret: { name: 'x' } },
    webhooks: { validating: { enabled: true, caBundle: 'eA==', token: 'x' } },
  },
]
/** Where no other value of the same type will do. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  bindAddress: '[::]',
  'image.digest': `sha256:${'1'.repeat(64)}`,
  'redis.url': 'redis://other:6379',
  'persistence.size': '3Gi',
  'certManager.duration': '48h',
  'certManager.renewBefore': '24h',
  'metrics.podMonitor.interval': '1m',
  'metrics.serviceMonitor.interval': '1m',
  'service.loadBalancerSourceRanges': ['192.0.2.0/24'],
  'proxyProtocol.from': ['192.0.2.7'],
  'settings.goawayChance': 0.01,
  'ports.control': 9450,
}
/** Values without an effect. */
const NONE = new Set(['global'])

function leaves({ members }: Group, at: readonly string[] = []): (readonly [path: readonly string[], value: Value])[] {
  return Object.entries(members).flatMap(([name, entry]) =>
    isGroup(entry) ? leaves(entry, [...at, name]) : [[[...at, name], entry] as const],
  )
}

/** Another value than the one that is given or the default. */
function another(path: string, { schema, fallback }: Value, current: unknown): unknown {
  const now = current ?? fallback
  if (path in SAMPLES) return SAMPLES[path]
  if (Array.isArray(schema['enum'])) return schema['enum'].find((option) => option !== now && option !== '')
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
  if (type === 'boolean') return now !== true
  if (type === 'integer' || type === 'number') return typeof now === 'number' ? now + 1 : 3
  // Durations have a pattern.
  const pattern = new RegExp(String(schema['pattern'] ?? ''))
  if (type === 'string') return pattern.test('changed') ? 'changed' : '7m'
  if (type === 'object') return { changed: 'x' }
  const items: unknown = schema['items']
  return Reflect.get(Object(items), 'type') === 'string' ? ['changed'] : [{ changed: 'x' }]
}

function changed(tree: Tree, path: readonly string[], change: (current: unknown) => unknown): Tree {
  const [name = '', ...rest] = path
  const inner = tree[name]
  if (rest.length === 0) return { ...tree, [name]: change(inner) }
  return { ...tree, [name]: changed(typeof inner === 'object' && inner !== null ? { ...inner } : {}, rest, change) }
}

async function rendered(tree: Tree): Promise<string> {
  const file = join(folder, 'values.json')
  writeFileSync(file, JSON.stringify(tree))
  const { code, stdout } = await template(['--values', file, '--set=crds.install=false', ...API_VERSIONS])
  return code === 0 ? stdout : ''
}

test('every value changes what is rendered', async () => {
  const before: string[] = []
  for (const context of CONTEXTS) before.push(await rendered(context))
  assert.ok(before.every((text) => text !== ''))
  const idle: string[] = []
  for (const [path, value] of leaves(VALUES)) {
    const name = path.join('.')
    if (NONE.has(name) || name === 'crds.install') continue
    let effective = false
    for (const [i, context] of CONTEXTS.entries()) {
      const text = await rendered(changed(context, path, (current) => another(name, value, current)))
      effective = text !== '' && text !== before[i]
      if (effective) break
    }
    if (!effective) idle.push(name)
  }
  assert.deepEqual(idle, [])
})
