// Each reason's response, as clients of kube-apiserver read it.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isRefusal, REFUSAL_TABLE, type RefusalReason, refusalResponse, refusalStatus, refuse } from './refusal.ts'

const TABLE: readonly [RefusalReason, number, string][] = [
  ['bad-request', 400, 'BadRequest'],
  ['request-info', 500, 'InternalError'],
  ['unknown-cluster', 404, 'NotFound'],
  ['headers-too-large', 431, 'RequestHeaderFieldsTooLarge'],
  ['target-too-long', 414, 'URITooLong'],
  ['misdirected', 421, 'MisdirectedRequest'],
  ['unauthorized', 401, 'Unauthorized'],
  ['revoked', 401, 'Unauthorized'],
  ['authentication-unavailable', 503, 'ServiceUnavailable'],
  ['impersonation-invalid', 400, 'BadRequest'],
  ['impersonation-forbidden', 403, 'Forbidden'],
  ['grant-ended', 403, 'Forbidden'],
  ['no-policy', 403, 'Forbidden'],
  ['policy-denied', 403, 'Forbidden'],
  ['access-denied', 403, 'Forbidden'],
  ['degraded', 503, 'ServiceUnavailable'],
  ['disruption-refused', 403, 'Forbidden'],
  ['eviction-refused', 429, 'TooManyRequests'],
  ['disruption-limited', 429, 'TooManyRequests'],
  ['rate-limited', 429, 'TooManyRequests'],
  ['too-many-in-flight', 429, 'TooManyRequests'],
  ['list-too-large', 429, 'TooManyRequests'],
  ['too-many-watches', 429, 'TooManyRequests'],
  ['too-many-cancelled', 429, 'TooManyRequests'],
  ['too-many-failures', 429, 'TooManyRequests'],
  ['share-exceeded', 429, 'TooManyRequests'],
  ['too-many-reviews', 429, 'TooManyRequests'],
  ['no-endpoint', 503, 'ServiceUnavailable'],
  ['upstream-failed', 502, 'BadGateway'],
  ['upgrade-unsupported', 400, 'BadRequest'],
  ['upgrade-failed', 502, 'BadGateway'],
  ['body-too-large', 413, 'RequestEntityTooLarge'],
  ['body-timeout', 408, 'Timeout'],
  ['unsupported-media-type', 415, 'UnsupportedMediaType'],
  ['protection-forbidden', 403, 'Forbidden'],
  ['protected', 429, 'TooManyRequests'],
  ['protection-unavailable', 503, 'ServiceUnavailable'],
  ['eviction-unavailable', 429, 'TooManyRequests'],
  ['scale-protected', 403, 'Forbidden'],
  ['scale-unavailable', 503, 'ServiceUnavailable'],
  ['scale-up-backed-off', 403, 'Forbidden'],
  ['session-not-recorded', 403, 'Forbidden'],
  ['not-federated', 404, 'NotFound'],
  ['federated-object-missing', 404, 'NotFound'],
  ['federated-name-twice', 409, 'Conflict'],
  ['federated-watch-merged', 422, 'Invalid'],
  ['federated-write', 405, 'MethodNotAllowed'],
  ['federated-encoding', 406, 'NotAcceptable'],
  ['federated-version-gone', 410, 'Expired'],
  ['federated-write-stale', 409, 'Conflict'],
  ['federated-version-ahead', 504, 'Timeout'],
  ['federated-memory', 429, 'TooManyRequests'],
  ['member-forbidden', 403, 'Forbidden'],
  ['member-answer', 502, 'BadGateway'],
  ['member-unavailable', 503, 'ServiceUnavailable'],
  ['websocket-origin', 403, 'Forbidden'],
  ['internal', 500, 'InternalError'],
]

function header(headers: readonly string[], name: string): string[] {
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1] === name)
}

describe('refusals', () => {
  it('has a row for every reason, and no other', () => {
    assert.deepEqual(Object.keys(REFUSAL_TABLE).sort(), TABLE.map(([reason]) => reason).sort())
  })

  for (const [reason, code, statusReason] of TABLE) {
    it(`${reason}: ${code} ${statusReason}`, () => {
      const refusal = refuse(reason, 'pods "ä" <not> allowed', { retryAfterSeconds: 7 })
      const { headers, body } = refusalResponse(refusal, { isEvents: false })
      const status = JSON.parse(body.toString('utf8'))
      const limited = code === 429 && !['eviction-unavailable', 'eviction-refused', 'list-too-large'].includes(reason)
      assert.deepEqual(status, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: reason === 'unauthorized' ? 'Unauthorized' : 'pods "ä" <not> allowed',
        reason: statusReason,
        ...(limited ? { details: { retryAfterSeconds: 7 } } : {}),
        code,
      })
      assert.deepEqual(headers.slice(0, 2), [':status', String(code)])
      assert.deepEqual(header(headers, 'content-length'), [String(body.length)])
      assert.deepEqual(header(headers, 'content-type'), ['application/json'])
      assert.deepEqual(header(headers, 'cache-control'), ['no-cache, private'])
      assert.deepEqual(header(headers, 'x-content-type-options'), ['nosniff'])
      assert.deepEqual(header(headers, 'www-authenticate'), [])
      assert.deepEqual(header(headers, 'retry-after'), limited ? ['7'] : [])
    })
  }

  it('never tells a client to send events again', () => {
    const { headers, body } = refusalResponse(refuse('rate-limited', 'm', { retryAfterSeconds: 1 }), { isEvents: true })
    assert.deepEqual(header(headers, 'retry-after'), [])
    assert.equal(JSON.parse(body.toString()).details, undefined)
  })

  it('sends Retry-After as an integer, and none when there is none', () => {
    const send = (seconds: number): string[] =>
      header(
        refusalResponse(refuse('rate-limited', 'm', { retryAfterSeconds: seconds }), { isEvents: false }).headers,
        'retry-after',
      )
    assert.deepEqual(send(0.2), ['1'])
    assert.deepEqual(send(2), ['2'])
    assert.deepEqual(send(0), [])
    assert.deepEqual(send(Number.NaN), [])
  })

  it('carries causes, with their fields', () => {
    const causes = [
      { reason: 'Expiry', message: 'until noon', field: '' },
      { reason: 'Mode', message: 'Freeze', field: 'spec.degrade.mode' },
    ]
    assert.deepEqual(
      Object.entries(refusalStatus(refuse('degraded', 'frozen', { causes }))).find(([k]) => k === 'details')?.[1],
      {
        causes: [
          { reason: 'Expiry', message: 'until noon' },
          { reason: 'Mode', message: 'Freeze', field: 'spec.degrade.mode' },
        ],
      },
    )
  })

  it('is told from other values', () => {
    assert.ok(isRefusal(refuse('internal', '')))
    assert.ok(!isRefusal({ name: 'x' }))
    assert.deepEqual(refuse('no-policy', 'm', { rule: 'p' }), {
      refused: 'no-policy',
      message: 'm',
      causes: [],
      retryAfterSeconds: 0,
      rule: 'p',
    })
  })
})
