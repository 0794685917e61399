// The kubectl suite against the embedded API server, and what only that one serves: the core kinds.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { cluster } from '../../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../../harness/gateways/control.ts'
import { type KubectlResult, kubectl } from '../../harness/kubectl/kubectl.ts'
import { kubectlSuite } from '../../harness/kubectl/suite.ts'

kubectlSuite('embedded', startControl)

describe('kubectl: core kinds of the embedded API server', () => {
  let control: TestControl
  const run = (...args: string[]): Promise<KubectlResult> =>
    kubectl(args, { kubeconfig: control.kubeconfig, home: control.dir })
  const ok = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...args)
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }

  before(async () => {
    control = await startControl()
  })
  after(async () => {
    await control.stop()
    assert.deepEqual(control.errors, [])
  })

  test('namespaces take their contents along', async () => {
    assert.match(await ok('create', 'namespace', 'blue'), /namespace\/blue created/)
    assert.match(await ok('get', 'ns'), /^blue +Active/m)
    await ok('create', 'secret', 'generic', 'inside', '-n', 'blue', '--from-literal=key=value')
    await ok('delete', 'ns', 'blue')
    assert.doesNotMatch(await ok('get', 'secrets', '-A'), /inside/)
    assert.match((await run('delete', 'ns', 'default')).stderr, /this namespace may not be deleted/)
  })

  test('secrets: create (protobuf), apply, edit and patch (strategic)', async () => {
    await ok('create', 'secret', 'generic', 'creds', '--from-literal=token=abc')
    assert.match(await ok('get', 'secret', 'creds'), /^creds +Opaque +1 /m)
    await ok('patch', 'secret', 'creds', '-p', '{"stringData":{"more":"x"}}')
    assert.match(await ok('get', 'secret', 'creds'), /^creds +Opaque +2 /m)
    assert.match(await ok('describe', 'secret', 'creds'), /^token: +3 bytes$/m)
    const text = 'apiVersion: v1\nkind: Secret\nmetadata: {name: applied}\nstringData: {a: b}\n'
    const apply = (stdin: string): Promise<KubectlResult> =>
      kubectl(['apply', '-f', '-'], { kubeconfig: control.kubeconfig, home: control.dir, stdin })
    assert.match((await apply(text)).stdout, /created/)
    assert.match((await apply(text.replace('a: b', 'a: c'))).stdout, /configured/)
    assert.equal(await ok('get', 'secret', 'applied', '-o', 'jsonpath={.data.a}'), 'Yw==')
    await ok('label', 'secret', 'applied', 'x=y')
    await ok('delete', 'secret', 'applied', 'creds')
  })

  test('events of an object are described with it', async () => {
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'happened', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'Secret', name: 'watched', namespace: 'default' },
      reason: 'Tested',
      message: 'all is well',
      type: 'Normal',
      source: { component: 'test' },
      firstTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
      lastTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
      count: 1,
    }
    await ok('create', 'secret', 'generic', 'watched')
    const uid = await ok('get', 'secret', 'watched', '-o', 'jsonpath={.metadata.uid}')
    const stdin = JSON.stringify({ ...event, involvedObject: { ...event.involvedObject, uid } })
    const made = await kubectl(['create', '-f', '-'], { kubeconfig: control.kubeconfig, stdin })
    assert.equal(made.code, 0, made.stderr)
    assert.match(await ok('get', 'events'), /Tested +secret\/watched +all is well/)
    assert.match(await ok('get', 'events', '--field-selector', 'reason=Tested'), /all is well/)
    await ok('delete', 'secret', 'watched')
  })

  test('what kubectl apply keeps of an object shows a viewer no key of it', async () => {
    const token = Buffer.from('a-token-of-the-gateway').toString('base64')
    const object = cluster('applied', { clientConfig: { bearerToken: token, insecure: true } })
    const stdin = JSON.stringify(object)
    const given = { kubeconfig: control.kubeconfig, home: control.dir, stdin }
    assert.match((await kubectl(['apply', '-f', '-'], given)).stdout, /created/)
    assert.match(await ok('get', 'uc', 'applied', '-o', 'yaml'), new RegExp(`last-applied-configuration[^]*${token}`))
    const viewer = { kubeconfig: control.kubeconfigFor({ cert: control.viewer }), home: control.dir }
    for (const args of [
      ['-o', 'yaml'],
      ['-o', 'json', '--show-managed-fields'],
      ['-o', 'wide'],
      ['-o', 'yaml', '-w', '--request-timeout=1s'],
    ]) {
      const { stdout } = await kubectl(['get', 'uc', 'applied', ...args], viewer)
      assert.match(stdout, /applied/)
      assert.ok(!stdout.includes(token), args.join(' '))
    }
    const described = await kubectl(['describe', 'uc', 'applied'], viewer)
    assert.match(described.stdout, /Bearer Token: +UkVEQUNURUQ=/)
    await ok('delete', 'uc', 'applied')
  })

  test('revoked credentials are created, listed and taken back', async () => {
    const object = {
      apiVersion: 'portcullis.io/v1alpha1',
      kind: 'RevokedCredential',
      metadata: { name: 'user-bob' },
      spec: { user: 'bob', reason: 'INC-1' },
    }
    const stdin = JSON.stringify(object)
    const viewer = { kubeconfig: control.kubeconfigFor({ cert: control.viewer }), home: control.dir }
    assert.equal((await kubectl(['get', 'uc'], viewer)).code, 0)
    const given = { kubeconfig: control.kubeconfig, home: control.dir, stdin }
    assert.match(
      (await kubectl(['apply', '-f', '-'], given)).stdout,
      /revokedcredential.portcullis.io\/user-bob created/,
    )
    assert.match(await ok('get', 'revokedcredentials'), /^user-bob +bob +INC-1 /m)
    assert.match(await ok('explain', 'revokedcredential.spec'), /credentialID/)
    const refused = await kubectl(['get', 'uc'], viewer)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /Unauthorized: user "bob" is revoked|You must be logged in/)
    await ok('delete', 'revokedcredential', 'user-bob')
    assert.equal((await kubectl(['get', 'uc'], viewer)).code, 0)
  })

  test('a viewer reads all but Secrets', async () => {
    const kubeconfig = control.kubeconfigFor({ cert: control.viewer })
    const view = (...args: string[]): Promise<KubectlResult> => kubectl(args, { kubeconfig, home: control.dir })
    assert.equal((await view('get', 'uc')).code, 0)
    const refused = await view('get', 'secrets')
    assert.match(
      refused.stderr,
      /secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace "default"/,
    )
    assert.match((await view('auth', 'can-i', 'delete', 'uc')).stdout, /^no$/m)
  })
})
