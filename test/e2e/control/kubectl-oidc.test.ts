// kubectl with the ID token of a real OpenID provider, given directly and by a credential plugin, at the embedded API server.

import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { type EmbeddedGateway, startEmbedded } from '../../harness/gateways/embedded.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../../harness/servers/oidc-issuer.ts'

const PEOPLE = {
  alice: { email: 'alice@example.com', email_verified: true, groups: ['sre'] },
  bob: { email: 'bob@example.com', email_verified: true, groups: ['support'] },
  eve: { email: 'eve@example.com', email_verified: false, groups: ['sre'] },
}

let issuer: OidcIssuer
let embedded: EmbeddedGateway

before(async () => {
  issuer = await startOidcIssuer({ people: PEOPLE, alg: 'ES256' })
  embedded = await startEmbedded({
    args: [
      `--control-oidc-issuer-url=${issuer.url}`,
      `--control-oidc-client-id=${OIDC_CLIENT}`,
      '--control-oidc-username-claim=email',
      '--control-oidc-groups-claim=groups',
      '--control-oidc-groups-prefix=company:',
      '--control-oidc-signing-algs=RS256,ES256',
      `--control-oidc-ca-file=${issuer.caFile}`,
      '--control-admin=group:company:sre',
      '--control-viewer=group:company:support',
    ],
  })
})
after(async () => {
  await embedded?.stop()
  await issuer?.stop()
})

/** A kubeconfig of the same server with another user. */
function kubeconfigOf(name: string, user: object): string {
  const { clusters } = parse(readFileSync(embedded.kubeconfig, 'utf8'))
  const file = join(embedded.dataDir, `${name}.kubeconfig`)
  const context = { name, context: { cluster: clusters[0].name, user: name } }
  const users = [{ name, user }]
  const config = { apiVersion: 'v1', kind: 'Config', clusters, contexts: [context], users, 'current-context': name }
  writeFileSync(file, stringify(config))
  return file
}

test('kubectl with --token: who am I, and what may I do', async () => {
  const kubeconfig = kubeconfigOf('alice', { token: await issuer.login('alice') })
  const whoami = await embedded.kubectl(['auth', 'whoami', '-o', 'json'], { kubeconfig })
  const { username, groups } = JSON.parse(whoami.stdout).status.userInfo
  assert.deepEqual([username, groups], ['alice@example.com', ['company:sre', 'system:authenticated']])
  assert.equal((await embedded.kubectl(['auth', 'can-i', 'delete', 'uc'], { kubeconfig })).stdout.trim(), 'yes')
  assert.equal((await embedded.kubectl(['create', 'namespace', 'blue'], { kubeconfig })).code, 0)
})

test('kubectl with a credential plugin, as kubectl oidc-login is one', async () => {
  const plugin = join(embedded.dataDir, 'login')
  const status = { token: await issuer.login('bob') }
  const credential = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status }
  writeFileSync(plugin, `#!/bin/sh\ncat <<'EOF'\n${JSON.stringify(credential)}\nEOF\n`)
  chmodSync(plugin, 0o755)
  const exec = { apiVersion: credential.apiVersion, command: plugin, interactiveMode: 'Never' }
  const kubeconfig = kubeconfigOf('bob', { exec })
  assert.equal((await embedded.kubectl(['get', 'uc'], { kubeconfig })).code, 0)
  const refused = await embedded.kubectl(['create', 'namespace', 'red'], { kubeconfig })
  assert.match(refused.stderr, /User "bob@example.com" cannot create resource "namespaces"/)
})

test('an email address that is not verified is no identity', async () => {
  const kubeconfig = kubeconfigOf('eve', { token: await issuer.login('eve') })
  const refused = await embedded.kubectl(['get', 'uc'], { kubeconfig })
  assert.match(refused.stderr, /You must be logged in to the server|Unauthorized/)
})
