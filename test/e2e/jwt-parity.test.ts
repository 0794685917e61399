// Tokens of issuers, told to a real kube-apiserver by --authentication-config and to the gateway by spec.authentication.jwt: the same user or the same
// 401 (test/data/jwt-authenticators.json), and expressions of all kinds with their values (test/data/jwt-expressions.json). The cluster behind the gateway
// knows none of the issuers.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { JwtAuthenticator } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { isInvalidExpression, parseExpression } from '../../src/kit/api/expressions/expression.ts'
import { binaries } from '../harness/binaries.ts'
import { apiserverFlags } from '../harness/clusters/apiserver.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { writeClusterFiles } from '../harness/clusters/cluster-files.ts'
import { kubeRequest } from '../harness/clusters/kube-request.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { EXPRESSIONS, expressionCases, expressionIssuer, expressionIssuers } from '../harness/jwt-expressions.ts'
import { gatewayCA } from '../harness/pki.ts'
import {
  JSON_NULL,
  type SignedBy,
  startTokenIssuers,
  TEST_AUDIENCE,
  type TokenIssuers,
} from '../harness/servers/token-issuers.ts'
import { waitFor } from '../harness/wait.ts'

interface Case {
  readonly name: string
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  readonly by?: SignedBy
  /** null = 401. */
  readonly user: Readonly<Record<string, unknown>> | null
  /** Why the gateway answers 401 where kube-apiserver does not. */
  readonly differs?: string
}

interface Table {
  readonly issuers: Readonly<
    Record<string, Partial<JwtAuthenticator> & { readonly issuer?: Partial<JwtAuthenticator['issuer']> }>
  >
  readonly cases: readonly Case[]
}

const AUTHENTICATORS = JSON.parse(
  readFileSync(join(import.meta.dirname, '../data/jwt-authenticators.json'), 'utf8'),
) as Table
const TABLE: Table = {
  issuers: { ...AUTHENTICATORS.issuers, ...expressionIssuers() },
  cases: [...AUTHENTICATORS.cases, ...expressionCases()],
}
const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const REVIEW = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }

let issuers: TokenIssuers
let reference: TestCluster
let cluster: TestCluster
let gateway: TestGateway

function authenticators(): readonly JwtAuthenticator[] {
  return Object.entries(TABLE.issuers).map(([name, { issuer, claimMappings, ...rules }]) => {
    const { discoveryURL, ...others } = issuer ?? {}
    return {
      issuer: {
        url: issuers.url(name),
        certificateAuthority: issuers.ca,
        audiences: [TEST_AUDIENCE],
        ...(discoveryURL !== undefined && { discoveryURL: `${issuers.url(name)}/${discoveryURL}` }),
        ...others,
      },
      claimMappings: claimMappings ?? { username: { claim: 'sub', prefix: '' } },
      ...rules,
    }
  })
}

before(async () => {
  issuers = await startTokenIssuers()
  const jwt = authenticators()
  const flag = `--authentication-config=${configurationFile('accepted', jwt)}`
  reference = await startCluster({ name: 'reference', extraApiserverFlags: [flag] })
  cluster = await startCluster({ name: 'behind' })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { authentication: { jwt } } })] })
  // Each has a token that both accept: then both have its keys.
  for (const name of Object.keys(TABLE.issuers)) {
    const good = TABLE.cases.find(
      ({ issuer, user, differs }) => issuer === name && user !== null && differs === undefined,
    )
    if (good === undefined) assert.fail(`${name} accepts no token`)
    const token = tokenOf(good)
    await waitFor(`the issuer ${name} at kube-apiserver`, async () => typeof (await direct(token)) === 'object')
    await waitFor(`the issuer ${name} at the gateway`, async () => typeof (await through(token)) === 'object')
  }
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  await reference?.stop()
  await issuers?.stop()
})

function configurationFile(name: string, jwt: readonly JwtAuthenticator[]): string {
  const file = join(tmpdir(), `portcullis-authentication-${name}-${process.pid}.json`)
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration', jwt }),
  )
  return file
}

type Seen = number | Readonly<Record<string, unknown>>

async function whoami(server: string, ca: string, token: string, serverName?: string): Promise<Seen> {
  const common = { user: { token }, ca, method: 'POST', path: REVIEWS, body: REVIEW, server }
  const answer = await kubeRequest({ ...common, ...(serverName !== undefined && { serverName }) })
  return answer.status === 201 ? answer.json().status.userInfo : answer.status
}

function direct(token: string): Promise<Seen> {
  return whoami(reference.apiservers[0]?.url ?? '', reference.ca.certPem, token)
}

function through(token: string): Promise<Seen> {
  return whoami(`https://127.0.0.1:${gateway.port}`, gatewayCA().certPem, token, hostOf(cluster.name))
}

/** `now+60` in times; null removes a claim, `JSON null` is one. */
function timed(claims: Case['claims']): Case['claims'] {
  const now = Math.floor(Date.now() / 1000)
  const entries = Object.entries(claims).map(([name, value]) => {
    if (value === 'JSON null') return [name, JSON_NULL] as const
    const relative = typeof value === 'string' && /^now[+-]\d+$/.test(value)
    return [name, relative ? now + Number(String(value).slice(3)) : value] as const
  })
  return Object.fromEntries(entries)
}

function tokenOf({ issuer, claims, header, by }: Case): string {
  const options = { ...(header !== undefined && { header }), ...(by !== undefined && { by }) }
  return issuers.token(issuer, timed(claims), options)
}

for (const one of TABLE.cases) {
  const { name, issuer, user, differs } = one
  test(`${issuer}: ${name}`, async () => {
    const token = tokenOf(one)
    const { groups = [], ...others } = user ?? {}
    const wanted =
      user === null ? 401 : { ...others, groups: [...(groups as readonly string[]), 'system:authenticated'] }
    assert.deepEqual(await direct(token), wanted)
    assert.deepEqual(await through(token), differs === undefined ? wanted : 401)
  })
}

test('what kube-apiserver refuses to start with, the gateway refuses when it is written', async () => {
  const { refused, alsoRefused, values, faults } = EXPRESSIONS
  const all = [...refused, ...alsoRefused, ...Object.keys(values), ...faults]
  const one = {
    issuer: { url: 'https://login.example.com', audiences: [TEST_AUDIENCE] },
    ...expressionIssuer(all),
  } as JwtAuthenticator
  const programs = await binaries()
  const files = writeClusterFiles('refusing', undefined, [])
  const flags = apiserverFlags(files, 'http://127.0.0.1:1', 0, 1)
  flags.push(`--authentication-config=${configurationFile('refused', [one])}`)
  const { status, stderr } = spawnSync(programs['kube-apiserver'], flags, { encoding: 'utf8' })
  rmSync(files.dir, { recursive: true })
  assert.notEqual(status, 0)
  assert.deepEqual(
    all.filter((_, n) => stderr.includes(`extra[${n}].valueExpression: `)),
    refused,
  )
  const here = all.filter((expression) => isInvalidExpression(parseExpression(expression, 'claims')))
  assert.deepEqual(here, [...refused, ...alsoRefused])
})
