// The base64 texts were sent by kubectl v1.36.3; the others are made with ProtobufWriter.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_MESSAGE_FIELDS } from '../../kit/core/text/protobuf-reader.ts'
import { ProtobufWriter } from '../../kit/core/text/protobuf-writer.ts'
import { StatusError } from '../../kube/api/status.ts'
import { decodeProtobuf } from './objects.ts'

test('kubectl auth whoami, auth can-i, create secret and create namespace', () => {
  const decode = (text: string): unknown => decodeProtobuf(Buffer.from(text, 'base64'))
  assert.deepEqual(
    decode(
      'azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgASBgoECgASABoAIgA=',
    ),
    { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} },
  )
  assert.deepEqual(
    decode(
      'azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSXwoQCgASABoAIgAqADIAOABCABJBCj8KB2RlZmF1bHQSBmNyZWF0ZRoUcHJveHkua3ViZWdhdGV3YXkuaW8iACoQdXBzdHJlYW1jbHVzdGVyczIAOgAaCAgAEgAaACAAGgAiAA==',
    ),
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: {
        resourceAttributes: {
          namespace: 'default',
          verb: 'create',
          group: 'proxy.kubegateway.io',
          resource: 'upstreamclusters',
        },
      },
    },
  )
  assert.deepEqual(decode('azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBeBIAGgAiACoAMgA4AEIAEgYKAWESAWIaABoAIgA='), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'x' },
    data: { a: 'Yg==' },
  })
  assert.deepEqual(decode('azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhsKEwoDZm9vEgAaACIAKgAyADgAQgASABoCCgAaACIA'), {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'foo' },
    spec: {},
    status: {},
  })
})

type Write = (out: ProtobufWriter) => void

function message(write: Write): Buffer {
  const out = new ProtobufWriter()
  write(out)
  return out.finish()
}

function body(apiVersion: string, kind: string, write: Write): Buffer {
  const typeMeta = message((out) => {
    out.string(1, apiVersion)
    out.string(2, kind)
  })
  const unknown = message((out) => {
    out.bytes(1, typeMeta)
    out.bytes(2, message(write))
  })
  return Buffer.concat([Buffer.from('k8s\0'), unknown])
}

/** A varint that the writer would omit. */
const ZERO_IN_FIELD_2 = Buffer.from([0x10, 0])

test('pointers to zero are kept, zero times are not, microseconds are six digits', () => {
  const renewed = message((out) => {
    out.int64(1, 1_767_225_600)
    out.int64(2, 1_234_567)
  })
  const spec = Buffer.concat([
    message((out) => {
      out.element(1, '')
      out.bytes(3, Buffer.alloc(0))
      out.bytes(4, renewed)
    }),
    ZERO_IN_FIELD_2,
  ])
  const lease = decodeProtobuf(body('coordination.k8s.io/v1', 'Lease', (out) => out.bytes(2, spec)))
  assert.deepEqual(lease['spec'], {
    holderIdentity: '',
    renewTime: '2026-01-01T00:00:00.001234Z',
    leaseDurationSeconds: 0,
  })
})

test('metadata: lists, maps, times, and keys that are anything', () => {
  const entry = (key: string, value: string): Buffer =>
    message((out) => {
      out.string(1, key)
      out.string(2, value)
    })
  const metadata = message((out) => {
    out.bytes(11, entry('__proto__', 'x'))
    out.bytes(11, entry('empty', ''))
    out.string(14, 'a/b')
    out.string(14, 'c/d')
    out.bytes(
      8,
      message((time) => time.int64(1, 1_767_225_600)),
    )
    out.bytes(
      13,
      message((owner) => owner.string(3, 'owner')),
    )
    out.bytes(
      17,
      message((managed) =>
        managed.bytes(
          7,
          message((fields) => fields.string(1, '{"f:a":{}}')),
        ),
      ),
    )
    out.string(99, 'of a newer client')
  })
  const secret = decodeProtobuf(body('v1', 'Secret', (out) => out.bytes(1, metadata)))
  const decoded = secret['metadata'] as Record<string, unknown>
  assert.deepEqual(Object.entries(decoded['labels'] as object), [
    ['__proto__', 'x'],
    ['empty', ''],
  ])
  assert.equal(Object.getPrototypeOf(decoded['labels']), Object.prototype)
  assert.deepEqual(decoded['finalizers'], ['a/b', 'c/d'])
  assert.equal(decoded['creationTimestamp'], '2026-01-01T00:00:00Z')
  assert.deepEqual(decoded['ownerReferences'], [{ name: 'owner' }])
  assert.deepEqual(decoded['managedFields'], [{ fieldsV1: { 'f:a': {} } }])
})

test('DeleteOptions have the version of the deleted object', () => {
  const options = decodeProtobuf(
    body('coordination.k8s.io/v1', 'DeleteOptions', (out) => {
      out.string(4, 'Background')
      out.bytes(
        2,
        message((preconditions) => preconditions.string(1, 'u')),
      )
    }),
  )
  assert.deepEqual(options, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'DeleteOptions',
    propagationPolicy: 'Background',
    preconditions: { uid: 'u' },
  })
})

function isBadRequest(error: unknown): boolean {
  return error instanceof StatusError && error.code === 400
}

test('a list of very many elements takes linear time', () => {
  const finalizers = Buffer.alloc(2 * 90_000)
  for (let at = 0; at < finalizers.length; at += 2) finalizers[at] = 14 * 8 + 2
  const secret = decodeProtobuf(body('v1', 'Secret', (out) => out.bytes(1, finalizers)))
  const decoded = secret['metadata'] as { readonly finalizers: readonly string[] }
  assert.equal(decoded.finalizers.length, 90_000)
})

test('a message with too many fields is not read any further: 413', () => {
  const most = Buffer.alloc(2 * (MAX_MESSAGE_FIELDS + 1))
  for (let at = 0; at < most.length; at += 2) most[at] = 14 * 8 + 2
  // Both inside and around the object.
  const around = Buffer.concat([Buffer.from('k8s\0'), most])
  for (const large of [body('v1', 'Secret', (out) => out.bytes(1, most)), around]) {
    assert.throws(
      () => decodeProtobuf(large),
      (error) =>
        error instanceof StatusError && error.code === 413 && error.message.includes(String(MAX_MESSAGE_FIELDS)),
    )
  }
})

test('a malformed body is a bad request, wherever it is truncated or changed', () => {
  const good = body('v1', 'Secret', (out) => {
    out.bytes(
      1,
      message((metadata) => metadata.string(1, 'name')),
    )
    out.bytes(
      2,
      message((data) => data.string(1, 'key')),
    )
  })
  decodeProtobuf(good)
  const bad: Buffer[] = [
    Buffer.alloc(0),
    Buffer.from('{}'),
    Buffer.from('k8s\0'),
    body('v1', 'Pod', () => undefined),
    body('apps/v1', 'constructor', () => undefined),
    body('v1', 'Secret', (out) => out.int64(1, 5)),
    body('v1', 'Secret', (out) => out.string(5, 'bytes for a bool')),
    body('v1', 'Secret', (out) => out.bytes(3, Buffer.from([0xff]))),
    Buffer.concat([Buffer.from('k8s\0'), Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])]),
    Buffer.concat([Buffer.from('k8s\0'), Buffer.alloc(20, 0xff)]),
    Buffer.concat([Buffer.from('k8s\0'), Buffer.from([0x0b, 0x0c])]),
  ]
  for (const bytes of bad) assert.throws(() => decodeProtobuf(bytes), isBadRequest, bytes.toString('hex'))
  for (let length = 0; length < good.length; length++) {
    try {
      decodeProtobuf(good.subarray(0, length))
    } catch (error) {
      assert.ok(isBadRequest(error), `cut at ${length}: ${error}`)
    }
  }
  for (let at = 0; at < good.length; at++) {
    for (const byte of [0, 0x7f, 0x80, 0xff]) {
      const changed = Buffer.from(good)
      changed[at] = byte
      try {
        decodeProtobuf(changed)
      } catch (error) {
        assert.ok(isBadRequest(error), `${byte} at ${at}: ${error}`)
      }
    }
  }
})
