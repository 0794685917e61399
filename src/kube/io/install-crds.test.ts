// Two versions of Portcullis at one API server: the newer one updates the CRDs, the older one leaves them alone. With a real kube-apiserver:
// test/e2e/control/kubernetes-source.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { crdOf } from '../../program/api/scheme.ts'
import type { ObjectClient } from '../api/object-client.ts'
import { CrdInstallation, installCrds } from './install-crds.ts'

const ESTABLISHED = { conditions: [{ type: 'Established', status: 'True' }] }
const OURS = '1.10.0'

/** A CRD as written by another version. */
function crdBy(version: string | undefined, change: (spec: JsonObject) => JsonObject = (spec) => spec): JsonObject {
  const { metadata, spec, ...rest } = crdOf(UPSTREAM_CLUSTERS, version ?? '') as Record<string, JsonObject>
  const { name } = metadata ?? {}
  const named = version === undefined ? { name } : metadata
  return {
    ...rest,
    metadata: { ...named },
    spec: change(structuredClone(spec ?? {})),
    status: ESTABLISHED,
  } as JsonObject
}

/** Simulates a field removed from, or added to, the schema of spec. */
function withProperties(change: (properties: Record<string, unknown>) => void): (spec: JsonObject) => JsonObject {
  return (spec) => {
    const text = JSON.stringify(spec)
    const copy = JSON.parse(text)
    change(copy.versions[0].schema.openAPIV3Schema.properties.spec.properties)
    return copy
  }
}

async function install(found: JsonObject): Promise<{ written: JsonObject | undefined; log: string[] }> {
  let written: JsonObject | undefined
  const log: string[] = []
  const tell = (message: string): void => void log.push(message)
  const client = {
    get: () => Promise.resolve(written ?? found),
    update: (_kind: unknown, object: JsonObject) => {
      written = object
      return Promise.resolve(object)
    },
  } as unknown as ObjectClient
  const logger = { debug: tell, info: tell, warn: tell, error: tell }
  await installCrds({ client, crds: [crdOf(UPSTREAM_CLUSTERS, OURS)], log: logger })
  return { written, log }
}

test('a CRD of a newer version stays as it is, whatever it lacks; one line says so', async () => {
  const removed = withProperties((properties) => delete properties['degrade'])
  for (const version of ['1.10.1', '1.11.0', '2.0.0', '10.0.0', '1.11.0-rc.1']) {
    for (const change of [undefined, removed]) {
      const { written, log } = await install(crdBy(version, change))
      assert.equal(written, undefined, version)
      assert.deepEqual(log, [
        'CustomResourceDefinition belongs to a newer version of Portcullis, and is left unchanged',
      ])
    }
  }
})

test('a newer version that serves no version of ours is one line', async () => {
  const found = crdBy('2.0.0', (spec) => JSON.parse(JSON.stringify(spec).replaceAll('"v1alpha1"', '"v2"')))
  await assert.rejects(
    install(found),
    (error) => error instanceof UserError && /version 2\.0\.0 .* no longer serves v1alpha1/.test(error.message),
  )
})

test('a CRD of an older version is replaced, also when only a rule has changed; what others labelled stays', async () => {
  for (const version of ['1.9.99', '1.9.0', '0.99.0']) {
    const found = crdBy(version)
    Object.assign((found['metadata'] as Record<string, JsonObject>)['labels'] ?? {}, { team: 'platform' })
    const { written } = await install(found)
    const labels = (written?.['metadata'] as Record<string, unknown> | undefined)?.['labels']
    assert.deepEqual(labels, { 'portcullis.io/version': OURS, team: 'platform' }, version)
  }
})

test('a CRD of the same or an unknown version is replaced only when a field is missing, whatever other fields it has', async () => {
  const removed = withProperties((properties) => delete properties['degrade'])
  const added = withProperties((properties) => Object.assign(properties, { fromTheNext: { type: 'string' } }))
  for (const version of [OURS, undefined, 'main', '']) {
    assert.equal((await install(crdBy(version))).written, undefined)
    assert.equal((await install(crdBy(version, added))).written, undefined)
    assert.notEqual((await install(crdBy(version, removed))).written, undefined)
  }
})

test('an API server that is away does not fail a start that may go on, and the log says why the CRDs wait', async () => {
  const lines: string[] = []
  const log = {
    ...SILENT,
    warn: (message: string, fields?: object) => void lines.push(message + JSON.stringify(fields)),
  }
  const client = { get: () => Promise.reject(new Error('connect ECONNREFUSED')) } as unknown as ObjectClient
  const options = { client, crds: [crdOf(UPSTREAM_CLUSTERS, '1.0.0')], log }
  await assert.rejects(new CrdInstallation(options).done(), /ECONNREFUSED/)
  assert.deepEqual(lines, [])
  const installation = new CrdInstallation(options)
  try {
    await installation.done(60_000)
    await waitFor('a line', () => lines.length > 0)
    assert.match(lines.join('\n'), /^CustomResourceDefinitions cannot be brought up to date yet.*ECONNREFUSED"\}$/)
  } finally {
    installation.stop()
  }
})
