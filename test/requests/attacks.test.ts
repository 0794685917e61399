// Attacks on the request path: whatever a client sends, upstream sees exactly the identity that was authenticated, or nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { h2Connect, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import {
  GOAWAY,
  HEADERS,
  headerBlock,
  headersFrames,
  openFrames,
  RST_STREAM,
  readFrames,
} from '../harness/frames/h2-frames.ts'
import {
  alice,
  assertAlice,
  attackedGateway,
  clientCA,
  ended,
  HOST,
  identityOf,
} from '../harness/gateways/attacked-gateway.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, replyReview, type SeenRequest, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const { stub, other, gateway, session, asAlice } = await attackedGateway()

describe('identity in header fields', () => {
  const dropped: [string, string[]][] = [
    ['front-proxy fields', ['X-Remote-User: admin', 'X-REMOTE-GROUP: system:masters', 'x-remote-uid: 0']],
    ['front-proxy extras', ['X-Remote-Extra-Scopes: all', 'x-Remote-eXtra-Foo%2fbar: x']],
    ['an empty Impersonate-User is none', ['Impersonate-User:']],
    ['impersonation fields of the future', ['Impersonate-Tenant: root', 'IMPERSONATE-X-Y: z']],
    ['Connection lists the identity', ['Connection: Impersonate-User, x-foo', 'X-Foo: 1']],
    ['Connection lists it in other letters', ['Connection: IMPERSONATE-user , impersonate-GROUP,keep-alive']],
    [
      'several Connection lines',
      ['Connection: keep-alive', 'Connection: impersonate-group', 'connection: authorization'],
    ],
    ['Connection lists extras', ['Connection: impersonate-extra-authentication.kubernetes.io%2fcredential-id']],
    ['Basic credentials', ['Authorization: Basic YWRtaW46YWRtaW4=']],
    ['two Authorization lines', ['Authorization: Basic eA==', 'authorization: Basic eQ==']],
    ['credentials for a proxy', ['Proxy-Authorization: Bearer x', 'Proxy-Connection: keep-alive']],
  ]
  for (const [name, fields] of dropped) {
    test(`HTTP/1.1: ${name}: dropped`, async () => {
      const answer = await http1Request(asAlice, requestHead('GET /api/v1/pods', fields))
      assert.equal(answer.status, 200)
      assert.equal(stub.seen.length, 1)
      assertAlice(stub.seen[0])
      for (const gone of ['connection', 'x-foo', 'proxy-authorization', 'proxy-connection']) {
        assert.deepEqual(stub.seen[0]?.values(gone), [])
      }
    })
  }

  const refused: [string, string[]][] = [
    ['a uid without a user', ['Impersonate-Uid: 0']],
    ['a uid in other letters', ['IMPERSONATE-UID: 0']],
    ['a group without a user', ['Impersonate-Group: system:masters']],
    ['several groups', ['impersonate-group: a', 'Impersonate-Group: system:masters']],
    ['an extra without a user', ['Impersonate-Extra-Scopes: all']],
    ['a group beside an empty user', ['Impersonate-User:', 'Impersonate-Group: system:masters']],
    ['bytes that are no UTF-8', ['Impersonate-User: \xff\xfe']],
  ]
  for (const [name, fields] of refused) {
    test(`HTTP/1.1: ${name}: 400, nothing forwarded`, async () => {
      const answer = await http1Request(asAlice, Buffer.from(requestHead('GET /api/v1/pods', fields), 'latin1'))
      assert.equal(answer.status, 400)
      assert.equal(stub.seen.length, 0)
    })
    test(`HTTP/2: ${name}: 400, nothing forwarded`, async () => {
      const list = fields.flatMap((field) => {
        const colon = field.indexOf(':')
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
      })
      assert.equal((await h2Request(session, list)).status, 400)
      assert.equal(stub.seen.length, 0)
    })
  }

  test('HTTP/2: fields with a forged identity are dropped', async () => {
    const list = ['x-remote-user', 'admin', 'x-remote-group', 'system:masters', 'impersonate-tenant', 'root']
    assert.equal((await h2Request(session, list)).status, 200)
    assertAlice(stub.seen[0])
  })

  test('a user refused by access reviews: 403, nothing forwarded', async () => {
    const answer = await http1Request(
      asAlice,
      requestHead('GET /api/v1/pods', ['Impersonate-User: admin', 'Impersonate-Uid: 7']),
    )
    assert.equal(answer.status, 403)
    assert.equal(stub.seen.length, 0)
  })

  test('the first of two users counts, and only that one is reviewed and sent', async () => {
    const asked: unknown[] = []
    stub.answerAccess = (review) => {
      const { resource, name } = review.spec['resourceAttributes'] as Record<string, string>
      asked.push([resource, name])
      replyReview(review, { allowed: name === 'bob' })
    }
    const fields = ['Impersonate-User: bob', 'impersonate-user: admin', 'IMPERSONATE-USER: root']
    const answer = await http1Request(asAlice, requestHead('GET /api/v1/pods', fields))
    assert.equal(answer.status, 200)
    assert.deepEqual(asked, [['users', 'bob']])
    assert.deepEqual(identityOf(stub.seen[0] as SeenRequest), {
      authorization: ['Bearer gateway-token'],
      'impersonate-user': ['bob'],
      'impersonate-group': ['system:authenticated'],
    })
  })
})

describe('header injection', () => {
  for (const [name, value] of [
    ['CR LF', 'a\r\n b'],
    ['CR', 'a\rImpersonate-User: admin'],
    ['LF', 'a\nImpersonate-User: admin'],
    ['NUL', 'a\0b'],
    ['DEL', 'a\x7fb'],
    ['ESC', 'a\x1bb'],
  ]) {
    test(`HTTP/1.1: ${name} in a value: 400 and the connection ends`, async () => {
      const client = await http1Connect(asAlice)
      client.send(requestHead('GET /api/v1/pods', [`X-Foo: ${value}`]))
      assert.equal((await client.response()).status, 400)
      await ended(client.raw)
      assert.equal(stub.seen.length, 0)
    })
  }

  const request = [':method', 'GET', ':path', '/api/v1/pods', ':scheme', 'https', ':authority', HOST]
  for (const [name, list] of [
    ['CR LF in a value', [...request, 'x-foo', 'a\r\nimpersonate-user: admin']],
    ['LF in a value', [...request, 'x-foo', 'a\nb']],
    ['NUL in a value', [...request, 'x-foo', 'a\0b']],
    ['an upper-case name', [...request, 'Impersonate-User', 'admin']],
    ['a name with a space', [...request, 'impersonate-user ', 'admin']],
    ['a name with a colon', [...request, 'x:impersonate-user', 'admin']],
    ['a name with CR LF', [...request, 'x\r\nimpersonate-user', 'admin']],
    ['an empty name', [...request, '', 'admin']],
    ['connection', [...request, 'connection', 'impersonate-user']],
    ['transfer-encoding', [...request, 'transfer-encoding', 'chunked']],
    ['upgrade', [...request, 'upgrade', 'websocket']],
    ['a pseudo-header field behind others', [...request.slice(2), 'x-foo', '1', ':method', 'GET']],
    ['two paths', [...request, ':path', '/api/v1/secrets']],
    ['a status', [...request, ':status', '200']],
    ['no path', [':method', 'GET', ':scheme', 'https', ':authority', HOST]],
    ['an empty path', [':method', 'GET', ':path', '', ':scheme', 'https', ':authority', HOST]],
    ['a path with CR LF', [':method', 'GET', ':path', '/a\r\nx: y', ':scheme', 'https', ':authority', HOST]],
    ['a method with a space', [':method', 'GET /x', ':path', '/', ':scheme', 'https', ':authority', HOST]],
    ['host beside another authority', [...request, 'host', 'other.example.com']],
    ['two content-lengths', [...request, 'content-length', '0', 'content-length', '5']],
  ] as const) {
    test(`HTTP/2: ${name}: refused, or at least not forwarded`, async () => {
      const client = await openFrames(asAlice)
      client.send(headersFrames(1, headerBlock(list)))
      await waitFor('a reset, a refusal or the end', () =>
        readFrames(client.received()).some(
          ({ type, stream }) => ((type === RST_STREAM || type === HEADERS) && stream === 1) || type === GOAWAY,
        ),
      )
      client.destroy()
      // A malformed field may be left out (RFC 9113 section 8.2.1 wants the request refused); a malformed request may not pass.
      if (stub.seen.length > 0) {
        assert.match(name, /in a value|a name with|an empty name/)
        assertAlice(stub.seen[0])
        assert.ok(!stub.seen[0]?.raw.some((text) => text.includes('admin') || text === 'x-foo'))
      }
      assert.ok(stub.seen.length <= 1)
      assert.equal(other.seen.length, 0)
    })
  }

  type TokenUser = { username: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> }
  const bad: [string, TokenUser][] = [
    ['name with CR LF', { username: 'eve\r\nImpersonate-Group: system:masters' }],
    ['name with LF', { username: 'eve\nadmin' }],
    ['name with NUL', { username: 'eve\0' }],
    ['name with a space at the end', { username: 'admin ' }],
    ['no name', { username: '' }],
    ['group with CR LF', { username: 'eve', groups: ['a\r\nImpersonate-Group: system:masters'] }],
    ['uid with LF', { username: 'eve', uid: '1\n2' }],
    ['extra with NUL', { username: 'eve', extra: { scopes: ['a\0'] } }],
  ]
  for (const [name, user] of bad) {
    test(`a token whose user has a ${name}: 401, nothing forwarded`, async () => {
      stub.answerToken = (review) => replyReview(review, { authenticated: true, user })
      const client = h2Connect({ port: gateway.port, serverName: HOST })
      const answer = await h2Request(client, ['authorization', `Bearer ${name}`])
      client.destroy()
      assert.equal(answer.status, 401)
      assert.equal(stub.seen.length, 0)
    })
  }

  for (const name of ['eve\r\nImpersonate-Group: system:masters', 'eve\nx', 'eve\0admin', ' eve']) {
    test(`a certificate for ${JSON.stringify(name)}: 401, nothing forwarded`, async () => {
      const client = h2Connect({ port: gateway.port, serverName: HOST, certificate: clientPair(clientCA, name) })
      const answer = await h2Request(client, [])
      client.destroy()
      assert.equal(answer.status, 401)
      assert.equal(stub.seen.length, 0)
    })
  }

  test('an extra key with CR LF arrives escaped, as one name', async () => {
    stub.tokens.set('t', { username: 'eve', extra: { 'a\r\nimpersonate-group': ['v'] } })
    const client = h2Connect({ port: gateway.port, serverName: HOST })
    await h2Request(client, ['authorization', 'Bearer t'])
    client.destroy()
    assert.deepEqual(stub.seen[0]?.values('impersonate-extra-a%0d%0aimpersonate-group'), ['v'])
    assert.deepEqual(stub.seen[0]?.values('impersonate-group'), ['system:authenticated'])
  })

  test('names beyond ASCII arrive as UTF-8 bytes', async () => {
    stub.tokens.set('utf8', { username: 'Zoë 王, O=x/%2F', groups: ['größe'] })
    const client = h2Connect({ port: gateway.port, serverName: HOST })
    await h2Request(client, ['authorization', 'Bearer utf8'])
    client.destroy()
    const utf8 = (values: string[] | undefined): string[] =>
      (values ?? []).map((value) => Buffer.from(value, 'latin1').toString('utf8'))
    assert.deepEqual(utf8(stub.seen[0]?.values('impersonate-user')), ['Zoë 王, O=x/%2F'])
    assert.deepEqual(utf8(stub.seen[0]?.values('impersonate-group')), ['größe', 'system:authenticated'])
  })
})

describe('redirects', () => {
  for (const status of [301, 302, 307, 308]) {
    test(`${status} is passed on, not followed`, async () => {
      const location = `${other.url}/api/v1/secrets`
      stub.answer = (request) => reply(request, status, '', ['location', location])
      const answer = await h2Request(session, [])
      assert.equal(answer.status, status)
      assert.deepEqual(valuesOf(answer.head, 'location'), [location])
      assert.equal(stub.seen.length, 1)
      assert.equal(other.seen.length, 0)
    })
  }
})

describe('targets', () => {
  test('with more than 9999 parameters are refused: they could hide anything', async () => {
    for (const hidden of ['watch=1', 'labelSelector=app%3Da']) {
      const answer = await h2Request(session, [':path', `/api/v1/pods?${'&'.repeat(9_999)}${hidden}`])
      assert.equal(answer.status, 400)
      assert.match(String(answer.body), /the query has more than 9999 parameters/)
    }
    assert.equal(stub.seen.length, 0)
  })

  const raw = [
    '/api/v1/namespaces/a/../../v1/secrets',
    '/api/v1/namespaces/a/%2e%2e/%2E%2e/secrets',
    '/api/v1/namespaces/a%2F..%2Fb/pods',
    '//api/v1/pods',
    '/api//v1///pods',
    '/api/v1\\..\\pods',
    '/api/v1/pods/',
    '/api/v1/pods;x=y',
    '/api/v1/pods?watch=0&x=%zz&&=',
    '/./api/v1/pods',
    '/api/v1/pods%00',
    '/api/v1/pods%0d%0aX-Foo:%20bar',
    '/api/v1/%70ods',
    '/%63lusters/other.example.com/api/v1/pods',
    '//clusters/other.example.com/api/v1/pods',
    '/./clusters/other.example.com/api/v1/pods',
  ]
  for (const target of raw) {
    test(`${target} is forwarded unchanged`, async () => {
      assert.equal((await h2Request(session, [':path', target])).status, 200)
      assert.deepEqual(
        stub.seen.map(({ path }) => path),
        [target],
      )
      const answer = await http1Request(asAlice, requestHead(`GET ${target}`))
      assert.equal(answer.status, 200)
      assert.equal(stub.seen[1]?.path, target)
      assert.equal(other.seen.length, 0)
    })
  }

  test('the path prefix is removed, the rest stays', async () => {
    for (const rest of ['/../other.example.com/api', '/%2e%2e/x', '//api', '/clusters/other.example.com/api', '?x=1']) {
      stub.seen.length = 0
      assert.equal((await h2Request(session, [':path', `/clusters/${HOST}${rest}`])).status, 200)
      assert.equal(stub.seen[0]?.path, rest.startsWith('/') ? rest : `/${rest}`)
    }
    assert.equal(other.seen.length, 0)
  })

  test('a prefix that names no cluster, or another one than SNI', async () => {
    for (const target of ['/clusters/../api', `/clusters/${HOST}%2fapi`, '/clusters/', '/clusters//api']) {
      assert.equal((await h2Request(session, [':path', target])).status, 404, target)
    }
    assert.equal((await h2Request(session, [':path', '/clusters/other.example.com/api'])).status, 421)
    assert.equal(stub.seen.length + other.seen.length, 0)
  })

  test('absolute-form: its host counts, and origin-form goes on', async () => {
    const target = `GET https://${HOST}/api/v1/../pods?x=y`
    assert.equal((await http1Request(asAlice, requestHead(target, ['Host: other.example.com']))).status, 200)
    assert.equal(stub.seen[0]?.path, '/api/v1/../pods?x=y')
    const elsewhere = requestHead('GET https://other.example.com/api/v1/pods')
    assert.equal((await http1Request(asAlice, elsewhere)).status, 421)
    assert.equal((await http1Request(asAlice, requestHead(`GET https://x@${HOST}/api`))).status, 200)
    assert.equal(stub.seen.length, 2)
    assert.equal(other.seen.length, 0)
  })

  test('the decision is made on the exact target that is forwarded', async () => {
    const rules = [{ verbs: ['*'], apiGroups: [''], resources: ['pods'], namespaces: ['a'] }]
    const strict = await startInProcess([clusterObject([stub], { clientCA, spec: { dispatchPolicies: [{ rules }] } })])
    const client = h2Connect({ port: strict.port, serverName: HOST, certificate: alice })
    try {
      for (const target of [
        '/api/v1/namespaces/a/pods/../secrets',
        '/api/v1/namespaces/a/../kube-system/pods',
        '/api/v1/namespaces/a/%2e%2e/kube-system/pods',
        '/api/v1/namespaces/a%2f..%2fkube-system/pods',
        '/api/v1/namespaces/a/pods/x/../../secrets',
        '/api/v1/namespaces/a/pods%2fx/exec',
        '/api/v1/namespaces/A/pods',
        '/api/v1/namespaces/a\\pods',
        '/API/v1/namespaces/a/pods',
        '/x/../api/v1/namespaces/a/pods',
      ]) {
        const { status } = await h2Request(client, [':path', target])
        // A name is a name, also `..`; what matters is that nothing is resolved on the way.
        if (status !== 403) assert.deepEqual([status, stub.seen.at(-1)?.path], [200, target])
        assert.ok(status === 403 || target.startsWith('/api/v1/namespaces/a/pods'), `${target}: ${status}`)
      }
      assert.equal((await h2Request(client, [':path', '/api/v1/namespaces/a/pods'])).status, 200)
    } finally {
      client.destroy()
      await strict.stop()
    }
  })

  test('OPTIONS and TRACE are requests like others: never reflected by the gateway', async () => {
    stub.answer = (request) => reply(request, 405, '{}')
    for (const method of ['OPTIONS', 'TRACE']) {
      const answer = await http1Request(
        asAlice,
        requestHead(`${method} /api/v1/pods`, ['Authorization: Basic c2VjcmV0']),
      )
      assert.equal(answer.status, 405)
      assert.equal(answer.body.toString(), '{}')
      assert.equal(stub.seen.at(-1)?.method, method)
    }
    assert.equal((await http1Request(asAlice, requestHead('OPTIONS *'))).status, 405)
    assert.equal(stub.seen.at(-1)?.path, '*')
  })
})

describe('what unauthenticated clients can learn and reach', () => {
  const ADMIN_PATHS = ['/metrics', '/debug/config', '/debug/pprof/', '/debug/flags/v', '/readyz', '/livez', '/configz']

  test('no admin handler on the proxy port, whatever Host says', async () => {
    for (const path of ADMIN_PATHS) {
      for (const host of ['127.0.0.1', `127.0.0.1:${gateway.port}`, '[::1]', 'localhost', '0', '']) {
        const answer = await http1Request({ port: gateway.port }, requestHead(`GET ${path}`, [`Host: ${host}`]))
        assert.equal(answer.status, 404, `${path} of ${host}`)
        assert.match(answer.body.toString(), /no cluster is served under/)
      }
    }
    const put = requestHead('PUT /debug/flags/v', ['Host: 127.0.0.1', 'Content-Length: 1'])
    assert.equal((await http1Request({ port: gateway.port }, `${put}5`)).status, 404)
  })

  test('with a default cluster they are requests for it', async () => {
    const single = await startInProcess([clusterObject([stub], { clientCA, spec: { default: true } })])
    try {
      for (const path of ADMIN_PATHS.filter((path) => path !== '/readyz')) {
        const answer = await http1Request({ port: single.port }, requestHead(`GET ${path}`, ['Host: 127.0.0.1']))
        assert.equal(answer.body.toString(), '{"kind":"Stub"}')
        assert.deepEqual(stub.seen.at(-1)?.values('impersonate-user'), ['system:anonymous'])
      }
    } finally {
      await single.stop()
    }
  })

  test('metric series do not grow with what clients invent', async () => {
    const series = async (): Promise<string[]> =>
      (await gateway.metrics())
        .split('\n')
        .filter((line) => !/^#|^portcullis_(nodejs|process)/.test(line))
        .map((line) => line.replace(/ [^ ]*$/, ''))
    const word = (i: number): string => `invented${i}`
    const send = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        await h2Request(session, [':path', `/apis/${word(i)}/v1/${word(i)}/n/${word(i)}`, 'user-agent', word(i)])
        await h2Request(session, [':path', `/${word(i)}?${word(i)}`, ':method', i % 2 === 0 ? 'GET' : 'PATCH'])
        await h2Request(session, [':path', `/${word(i)}`, ':authority', `${word(i)}.example.com`])
        await http1Request({ port: gateway.port }, requestHead(`OPTIONS /${word(i)}`, [`Host: ${word(i)}`]))
      }
    }
    stub.answer = (request) => reply(request, 404, '{}')
    await send(0, 150)
    const before = await series()
    await send(1_000, 1_150)
    const known = new Set(before)
    assert.deepEqual(
      (await series()).filter((line) => !known.has(line)),
      [],
      'full: nothing invented is taken up any more',
    )
  })

  test('errors tell no address of upstream', async () => {
    const gone = await startStub()
    const lonely = await startInProcess([clusterObject([gone], { clientCA })])
    const client = h2Connect({ port: lonely.port, serverName: HOST })
    try {
      const answers = []
      gone.answer = ({ stream }) => stream.close(2)
      answers.push(await h2Request(client, []))
      gone.answer = ({ session: upstream }) => upstream?.destroy()
      answers.push(await h2Request(client, []))
      await gone.stop()
      answers.push(await h2Request(client, []))
      answers.push(await h2Request(client, ['authorization', 'Bearer unseen']))
      answers.push(
        await waitFor('the endpoint to count as gone', async () => {
          const answer = await h2Request(client, [])
          return answer.body.includes('no endpoint') && answer
        }),
      )
      for (const answer of answers) {
        assert.ok(answer.status >= 502, String(answer.status))
        const text = `${answer.head.join(' ')} ${answer.body}`
        assert.ok(!text.includes('127.0.0.1') && !text.includes(String(gone.port)), text)
        assert.doesNotMatch(text, /ECONN|errno|socket|tls|\.ts:/i)
      }
    } finally {
      client.destroy()
      await lonely.stop()
    }
  })
})
