// A user logs out at a real OpenID provider, which tells one of two replicas: the watches of its kubectl end at both, with the rights of deploy/rbac.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import { TestBrowser } from '../harness/servers/test-browser.ts'
import { waitFor } from '../harness/wait.ts'

const RBAC = resolve(import.meta.dirname, '../../deploy/rbac/control-cluster.yaml')
const PEOPLE = {
  alice: { email: 'alice@example.com', email_verified: true, groups: ['sre'] },
  bob: { email: 'bob@example.com', email_verified: true, groups: ['sre'] },
}

let issuer: OidcIssuer
let cluster: TestCluster
let own: Credentials
let told: TestGateway
let other: TestGateway
const answers: { status: number; text: string }[] = []
const agent = new Agent({ connect: { ca: gatewayCA().certPem } })

before(async () => {
  issuer = await startOidcIssuer({ people: PEOPLE, tellOfLogout })
  cluster = await startCluster()
  await cluster.apply(readFileSync(RBAC, 'utf8'))
  const path = '/api/v1/namespaces/portcullis-system/serviceaccounts/portcullis/token'
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  own = { token: String((await cluster.request(path, { method: 'POST', body })).json().status.token) }
  told = await serve('told')
  other = await serve('other')
  const jwt = [
    {
      issuer: { url: issuer.url, audiences: [OIDC_CLIENT], certificateAuthority: readFileSync(issuer.caFile, 'utf8') },
      claimMappings: { username: { claim: 'email', prefix: '' }, groups: { claim: 'groups', prefix: '' } },
      backchannelLogout: true,
    },
  ]
  await cluster.apply(JSON.stringify(upstreamClusterFor(cluster, { spec: { authentication: { jwt } } })))
  const role = ['clusterrole', 'reader', '--verb=list,watch', '--resource=configmaps']
  for (const args of [role, ['clusterrolebinding', 'sre', '--clusterrole=reader', '--group=sre']]) {
    const created = await cluster.kubectl(['create', ...args])
    assert.equal(created.code, 0, created.stderr)
  }
})
after(async () => {
  await Promise.all([told?.stop(), other?.stop()])
  await cluster?.stop()
  await issuer?.stop()
  await agent.close()
})

function serve(replica: string): Promise<TestGateway> {
  const source = [
    '--source=kubernetes',
    `--kubeconfig=${cluster.kubeconfigFor(own)}`,
    '--control-listen=127.0.0.1:CONTROL',
  ]
  return startGateway({ clusters: [], source, args: [`--replica-name=${replica}`] })
}

/** As a load balancer does: to one of the replicas. */
async function tellOfLogout(form: string): Promise<number> {
  const { status, text } = await post(form)
  answers.push({ status, text })
  return status
}

async function post(form: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`https://127.0.0.1:${told.port}/clusters/-/backchannel-logout`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form,
    dispatcher: agent,
  })
  return { status: answer.status, text: await answer.text() }
}

/** The user of a browser, as kubectl has it. */
class Person {
  readonly browser = new TestBrowser(readFileSync(issuer.caFile, 'utf8'))
  token = ''
  readonly name: string

  constructor(name: string) {
    this.name = name
  }

  async logIn(): Promise<this> {
    this.token = await issuer.login(this.name, this.browser)
    return this
  }

  async run(gateway: TestGateway, ...args: string[]): ReturnType<TestCluster['kubectl']> {
    const kubeconfig = await kubeconfigThrough(gateway, cluster, { token: this.token }, { path: true })
    return await cluster.kubectl([...args, '-n', 'default'], { kubeconfig })
  }

  async mayRead(gateway: TestGateway): Promise<boolean> {
    return (await this.run(gateway, 'get', 'configmaps')).code === 0
  }
}

async function openWatches(gateway: TestGateway): Promise<number> {
  const { status, text } = await gateway.admin(`/api/v1/sessions?cluster=${cluster.name}`)
  assert.equal(status, 200, text)
  const { sessions } = JSON.parse(text) as { sessions: readonly { open: number }[] }
  return sessions.reduce((sum, { open }) => sum + open, 0)
}

test('a logout at the provider ends the watches of the session at both replicas, and its token is refused from then on', async () => {
  const alice = await new Person('alice').logIn()
  const elsewhere = await new Person('alice').logIn()
  const bob = await new Person('bob').logIn()
  for (const gateway of [told, other]) await waitFor('the cluster', () => bob.mayRead(gateway))
  const watches = [told, other].map((gateway) => alice.run(gateway, 'get', 'configmaps', '--watch'))
  let stays = true
  const others = [elsewhere, bob].map((person) =>
    person.run(told, 'get', 'configmaps', '--watch', '--request-timeout=4m').finally(() => {
      stays = false
    }),
  )
  await waitFor('the watches', async () => (await openWatches(told)) === 3 && (await openWatches(other)) === 1)
  await issuer.endSession(alice.browser)
  assert.deepEqual(answers, [{ status: 200, text: '{"sessions":"ended","inForce":"all replicas"}\n' }])
  await Promise.all(watches)
  for (const gateway of [told, other]) {
    const refused = await alice.run(gateway, 'get', 'configmaps')
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, /session of the token has ended at its provider|must be logged in/)
    assert.ok(await bob.mayRead(gateway))
    assert.ok(await elsewhere.mayRead(gateway), 'another session of the same user')
  }
  assert.ok(stays)
  assert.equal(await openWatches(told), 2)
  const objects = await cluster.kubectl(['get', 'endedsessions'])
  assert.match(objects.stdout, new RegExp(`${issuer.url} +alice +\\S+ +`))

  // A replica that starts later.
  await other.stop()
  other = await serve('other')
  await waitFor('the cluster', () => bob.mayRead(other))
  assert.equal(await alice.mayRead(other), false)
  await alice.logIn()
  for (const gateway of [told, other]) assert.ok(await alice.mayRead(gateway), 'logged in again')
  await told.stop()
  await Promise.all(others)
})
