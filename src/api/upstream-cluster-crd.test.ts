import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { test } from 'node:test'
import { stringify } from 'yaml'
import type { JsonSchema } from './json-schema.ts'
import { upstreamClusterCrd } from './upstream-cluster-crd.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './upstream-cluster-schema.ts'

const FILE = new URL('../../deploy/crds/proxy.kubegateway.io_upstreamclusters.yaml', import.meta.url)
const COMMAND = 'UPDATE=1 node --test src/api/upstream-cluster-crd.test.ts'

test('deploy/crds/ holds what the schema says', () => {
  const head = `# Generated from src/api/upstream-cluster-schema.ts; to write it anew: ${COMMAND}\n`
  const yaml = head + stringify(upstreamClusterCrd(), { lineWidth: 120, aliasDuplicateObjects: false })
  if (process.env['UPDATE'] === '1') writeFileSync(FILE, yaml)
  assert.equal(readFileSync(FILE, 'utf8'), yaml, `the CRD is out of date; to write it anew: ${COMMAND}`)
})

test('every field is described, and the schema is structural', () => {
  const visit = (schema: JsonSchema, path: string): void => {
    assert.ok(schema.description, `${path} has no description`)
    assert.equal(schema.type === 'array', schema.items !== undefined, path)
    assert.equal(schema.type === 'object', schema.properties !== undefined, path)
    assert.ok(!('additionalProperties' in schema), path)
    for (const name of schema.required ?? []) assert.ok(schema.properties?.[name], `${path}.${name}`)
    if (schema.items !== undefined) visit(schema.items, `${path}[]`)
    for (const [name, property] of Object.entries(schema.properties ?? {})) visit(property, `${path}.${name}`)
  }
  visit(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'spec')
})
