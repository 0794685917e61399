import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnyResponse, PlainRequest } from '../../../gateway/io/listener/http-plain.ts'
import { type AdminRoute, answerRoute, NO_USER, OPEN_ADMIN, PLAIN_TEXT } from './route.ts'

const request = (method: string, path: string): PlainRequest => ({
  method,
  path,
  query: new URLSearchParams(),
  authorization: '',
  remoteAddress: '127.0.0.1',
  header: () => '',
  certificate: undefined,
  signal: new AbortController().signal,
  readBody: () => Promise.resolve(''),
})

function route(method: AdminRoute['method'], path: string, access: AdminRoute['access'] = 'view'): AdminRoute {
  return {
    method,
    path,
    access,
    answer: (_, { name }) => ({ code: 200, contentType: PLAIN_TEXT, body: `${method} ${path} ${name}` }),
  }
}

const ROUTES = [
  route('GET', '/livez', 'health'),
  route('GET', '/debug/level', 'admin'),
  route('PUT', '/debug/level', 'admin'),
  route('GET', '/clusters/*'),
  route('GET', '/clusters/own'),
]

const said = (answer: AnyResponse): unknown[] => [answer.code, 'body' in answer ? String(answer.body).trim() : '']

test('a route is found by path and method; the exact one first', async () => {
  for (const [method, path, expected] of [
    ['GET', '/debug/level', 'GET /debug/level '],
    ['PUT', '/debug/level', 'PUT /debug/level '],
    ['GET', '/clusters/prod', 'GET /clusters/* '],
    ['GET', '/clusters/own', 'GET /clusters/own '],
  ] as const) {
    assert.deepEqual(said(await answerRoute(request(method, path), ROUTES, OPEN_ADMIN)), [200, expected.trim()])
  }
})

test('what is not there, and methods that are not', async () => {
  for (const path of ['/', '/clusters/', '/clusters', '/debug/level/', '/LIVEZ']) {
    const [code, body] = said(await answerRoute(request('GET', path), ROUTES, OPEN_ADMIN))
    assert.equal(code, 404, path)
    assert.equal(body, `not found; paths: /livez /debug/level /clusters/* /clusters/own`)
  }
  const answer = await answerRoute(request('POST', '/debug/level'), ROUTES, OPEN_ADMIN)
  assert.deepEqual([answer.code, answer.headers], [405, { allow: 'GET, PUT' }])
})

test('who may not ask is refused, and the route not called; health is for everybody', async () => {
  const asked: string[] = []
  const refused = { code: 403, contentType: PLAIN_TEXT, body: 'no' } as const
  const access = (_: PlainRequest, { path, access: need }: AdminRoute) => {
    asked.push(`${need} ${path}`)
    return Promise.resolve(need === 'admin' ? { refused } : { user: { ...NO_USER, name: 'ann' } })
  }
  assert.deepEqual(said(await answerRoute(request('GET', '/debug/level'), ROUTES, access)), [403, 'no'])
  assert.deepEqual(said(await answerRoute(request('GET', '/clusters/a'), ROUTES, access)), [200, 'GET /clusters/* ann'])
  assert.deepEqual(said(await answerRoute(request('GET', '/livez'), ROUTES, access)), [200, 'GET /livez'])
  assert.deepEqual(asked, ['admin /debug/level', 'view /clusters/*'])
})
