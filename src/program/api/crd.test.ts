import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { test } from 'node:test'
import { stringify } from 'yaml'
import { DURATION_PATTERN, type JsonSchema } from '../../kit/api/json/json-schema.ts'
import { CUSTOM_KINDS, crdOf } from './scheme.ts'

const FOLDER = new URL('../../../deploy/crds/', import.meta.url)
/** A release changes it, and regenerates the files. */
const VERSION = String(JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')).version)
const COMMAND = 'UPDATE=1 node --test src/program/api/crd.test.ts'

for (const kind of CUSTOM_KINDS) {
  test(`deploy/crds/ holds the ${kind.kind} of the scheme`, () => {
    const file = new URL(`${kind.group}_${kind.plural}.yaml`, FOLDER)
    const head = `# Generated from the schemas of the kinds; to regenerate it: ${COMMAND}\n`
    // kubectl reads YAML 1.1, where on and off are booleans unless quoted.
    const yaml =
      head + stringify(crdOf(kind, VERSION), { lineWidth: 120, aliasDuplicateObjects: false, version: '1.1' })
    if (process.env['UPDATE'] === '1') writeFileSync(file, yaml)
    assert.equal(readFileSync(file, 'utf8'), yaml, `the CRD is out of date; to regenerate it: ${COMMAND}`)
  })
}

test('the CRD of UpstreamCluster refuses -* by a pattern', () => {
  const crd = JSON.stringify(crdOf(CUSTOM_KINDS[0] ?? assert.fail(), VERSION))
  const patterns = new Set([...crd.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, text = '']) => JSON.parse(text)))
  patterns.delete(DURATION_PATTERN)
  assert.equal(patterns.size, 1)
  const pattern = new RegExp(String([...patterns][0]), 'u')
  for (const entry of ['', '*', 'get', '-get', '-', '-**x', 'a-*', '--*', '\n', '-\n'])
    assert.ok(pattern.test(entry), entry)
  for (const entry of ['-*', '-**', '-***']) assert.ok(!pattern.test(entry), entry)
})

test('a schema is structural where lists and maps have what rules need', () => {
  const visit = (schema: JsonSchema, path: string): void => {
    const key = schema['x-kubernetes-list-map-keys']
    assert.equal(schema['x-kubernetes-list-type'] === 'map', key !== undefined, path)
    for (const name of key ?? []) assert.ok(schema.items?.required?.includes(name), `${path} has no key ${name}`)
    if (schema.items !== undefined) visit(schema.items, `${path}[]`)
    for (const [name, property] of Object.entries(schema.properties ?? {})) visit(property, `${path}.${name}`)
  }
  for (const kind of CUSTOM_KINDS) visit(kind.schema, kind.kind)
})
