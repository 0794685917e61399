import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { rfc3339Micro } from '../../../kit/io/world/timestamp.ts'
import { AUDIT_LEVELS, AUDIT_STAGES } from '../../api/audit.ts'
import { type AuditEvent, type AuditUser, annotationFields, auditLine } from './audit-event.ts'

/** The event as an object: what the line must contain. */
function expected(event: AuditEvent): unknown {
  const { requestObject, responseObject, object, response } = event
  const without = <T extends object>(fields: T): object =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '' && value !== undefined))
  const user = ({ name, uid, groups, extra = {} }: AuditUser): object => ({
    ...without({ username: name, uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  })
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: event.level ?? 'Metadata',
    auditID: event.auditId,
    stage: event.stage,
    requestURI: event.requestURI,
    verb: event.verb,
    user: event.user === undefined ? {} : user(event.user),
    ...(event.impersonatedUser !== undefined && { impersonatedUser: user(event.impersonatedUser) }),
    ...(event.sourceIP !== '' && { sourceIPs: [event.sourceIP] }),
    ...(event.userAgent !== '' && { userAgent: event.userAgent }),
    ...(object !== undefined && {
      objectRef: { ...without(object), resource: object.resource, apiVersion: object.apiVersion },
    }),
    ...(response !== undefined && { responseStatus: { metadata: {}, ...response } }),
    requestReceivedTimestamp: rfc3339Micro(event.receivedMs),
    stageTimestamp: rfc3339Micro(event.stageMs),
    annotations: event.annotations,
    ...(requestObject !== undefined && { requestObject: JSON.parse(requestObject) }),
    ...(responseObject !== undefined && { responseObject: JSON.parse(responseObject) }),
  }
}

// Quotes, line ends, control characters, half surrogate pairs.
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '"', '\n\u2028', '\ud800', '__proto__'),
)
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined })
const time = fc.integer({ min: 0, max: 4e12 })
const user = fc.record(
  { name: text, uid: text, groups: fc.array(text), extra: fc.dictionary(text, fc.array(text)) },
  { requiredKeys: ['name', 'uid', 'groups'] },
)
const object = fc.record({
  resource: text,
  namespace: text,
  name: text,
  apiGroup: text,
  apiVersion: text,
  subresource: text,
  uid: maybe(fc.string({ minLength: 1 })),
  resourceVersion: maybe(fc.string({ minLength: 1 })),
})
const response = fc.record({
  code: maybe(fc.integer({ min: 100, max: 599 })),
  status: maybe(text),
  message: maybe(text),
  reason: maybe(text),
  details: maybe(fc.jsonValue()),
})
const event: fc.Arbitrary<AuditEvent> = fc.record({
  level: fc.constantFrom(...AUDIT_LEVELS),
  auditId: text,
  stage: fc.constantFrom(...AUDIT_STAGES),
  requestURI: text,
  verb: text,
  user: maybe(user),
  impersonatedUser: maybe(user),
  sourceIP: text,
  userAgent: text,
  object: maybe(object),
  response: maybe(response),
  requestObject: maybe(fc.json()),
  responseObject: maybe(fc.json()),
  receivedMs: time,
  stageMs: time,
  annotations: fc.dictionary(text, text),
})

test('the line is one line of JSON, and the JSON is the event', () => {
  fc.assert(
    fc.property(event, (one) => {
      const line = auditLine(one)
      const fields = auditLine({ ...one, annotations: {}, annotationFields: annotationFields(one.annotations) })
      assert.equal(fields, line)
      assert.equal(/[\n\r]/.test(line), false)
      // As JSON.stringify would do: undefined fields are omitted.
      assert.deepEqual(JSON.parse(line), JSON.parse(JSON.stringify(expected(one))))
    }),
  )
})
