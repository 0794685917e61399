import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PostReview } from '../../admin/app/access/review-access.ts'
import type { AdminRefusal } from '../../admin/io/server/route.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { reviewAccess } from './health-port.ts'

const logged: string[] = []
const keep = (message: string): void => void logged.push(message)
const log: Logger = { debug: keep, info: keep, warn: keep, error: keep }

interface Asked {
  readonly path: string
  // biome-ignore lint/suspicious/noExplicitAny: any request body
  readonly body: any
}

/** An API server that authenticates `good` and `prometheus-TOKEN`s, and allows /metrics to prometheus. */
function apiserver(asked: Asked[], fails: () => boolean = () => false): PostReview {
  return async (path, text) => {
    const body = JSON.parse(text)
    asked.push({ path, body })
    await Promise.resolve()
    if (fails()) throw new Error('no answer from https://api')
    const status = path.includes('tokenreviews') ? tokenStatus(body.spec.token) : accessStatus(body.spec)
    return { status: 201, body: JSON.stringify({ ...body, status }) }
  }
}

function tokenStatus(token: string): object {
  const name = /^(prometheus|good)/.exec(token)?.[1]
  if (name === undefined) return { authenticated: false }
  return { authenticated: true, user: { username: name, groups: ['system:authenticated'] } }
}

function accessStatus({ user, nonResourceAttributes }: Asked['body']['spec']): object {
  const { path, verb } = nonResourceAttributes
  return { allowed: user === 'prometheus' && path === '/metrics' && verb === 'get' }
}

const code = (refusal: AdminRefusal | undefined): number => refusal?.code ?? 200

describe('/metrics by the API server of the objects', () => {
  test('who is allowed to get /metrics may; answers are remembered', async () => {
    const asked: Asked[] = []
    let now = 0
    const access = reviewAccess(apiserver(asked), () => now, log)
    for (const [authorization, expected] of [
      ['', 401],
      ['Basic x', 401],
      ['Bearer invented', 401],
      ['Bearer good', 403],
      ['Bearer prometheus', 200],
    ] as const) {
      assert.equal(code(await access(authorization, '192.0.2.1')), expected, authorization)
      assert.equal(code(await access(authorization, '192.0.2.1')), expected, authorization)
    }
    assert.equal(asked.length, 1 + 2 + 2)
    assert.deepEqual(asked.at(-1)?.body.spec.nonResourceAttributes, { path: '/metrics', verb: 'get' })
    now += 61_000
    assert.equal(code(await access('Bearer prometheus', '192.0.2.1')), 200)
    assert.equal(asked.length, 5 + 2, 'a right that was taken away does not work for ever')
  })

  test('no answer is 503, reported once, and never remembered', async () => {
    let down = true
    logged.length = 0
    const access = reviewAccess(
      apiserver([], () => down),
      () => 0,
      log,
    )
    for (let i = 0; i < 3; i++) {
      const refusal = await access('Bearer prometheus', '192.0.2.1')
      assert.deepEqual([refusal?.code, refusal?.retryAfterSeconds], [503, 1])
      assert.doesNotMatch(refusal?.message ?? '', /https:/)
    }
    assert.equal(logged.length, 1)
    down = false
    assert.equal(code(await access('Bearer prometheus', '192.0.2.1')), 200)
  })

  test('invented tokens: few reviews at a time, and another address has its turn', async () => {
    let running = 0
    let most = 0
    const answers: (() => void)[] = []
    const inner = apiserver([])
    const slow: PostReview = async (path, body) => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => answers.push(resolve))
      running--
      return inner(path, body)
    }
    const access = reviewAccess(slow, () => 0, log)
    const flood = Array.from({ length: 200 }, (_, i) => access(`Bearer invented-${i}`, '192.0.2.1'))
    const other = access('Bearer prometheus', '198.51.100.1')
    let done = false
    const all = Promise.all(flood).finally(() => {
      done = true
    })
    void other.finally(() => undefined)
    let allowed: number | undefined
    void other.then((refusal) => {
      allowed = code(refusal)
    })
    // Only pending reviews are answered: from the flood, as many as it could send.
    for (let turns = 0; allowed === undefined && turns < 10_000; turns++) {
      answers.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal(allowed, 200)
    assert.ok(most <= 8, `${most} at a time`)
    while (!done) {
      answers.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const refusals = await all
    for (const refusal of refusals) {
      if (refusal?.code !== 429) continue
      const { message, retryAfterSeconds } = refusal
      const end = `10 a second are sent, shared fairly among addresses; retry in ${retryAfterSeconds} s`
      assert.equal(message, `too many reviews of tokens and rights because of address 192.0.2.1: ${end}`)
      assert.ok(retryAfterSeconds >= 1)
    }
    const codes = refusals.map(code)
    assert.ok(codes.filter((one) => one === 429).length >= 150, codes.join())
    assert.ok(codes.every((one) => one === 429 || one === 401))
  })
})
