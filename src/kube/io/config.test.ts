import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { KubeCredentials } from './config-access.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-kubeconfig-'))
after(() => rmSync(dir, { recursive: true, force: true }))

function write(name: string, text: string): string {
  const file = join(dir, name)
  writeFileSync(file, text)
  return file
}

function config(user: string, server = 'https://k.test:6443/clusters/x'): string {
  return `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: k, cluster: {server: '${server}', certificate-authority: ca.crt, tls-server-name: inside}}]
users: [{name: u, user: ${user}}]
contexts: [{name: one, context: {cluster: k, user: u}}, {name: lost, context: {cluster: gone, user: u}}]
`
}

test('files next to the kubeconfig are read; a token file may end with a line break', async () => {
  write('ca.crt', 'the CA')
  write('token', 'from-file\n')
  const file = write('token-file.yaml', config('{tokenFile: token, token: inline}'))
  const credentials = new KubeCredentials({ kubeconfigFile: file })
  assert.equal(credentials.server, 'https://k.test:6443/clusters/x')
  const { tls, headers, proxyUrl } = await credentials.access()
  assert.deepEqual(headers, { authorization: 'Bearer from-file' })
  assert.deepEqual(tls, { ca: 'the CA', cert: '', key: '', serverName: 'inside', insecure: false })
  assert.equal(proxyUrl, '')
})

test('after a 401 everything is read again, but not twice in a row', async () => {
  const file = write('changing.yaml', config('{token: old}'))
  const credentials = new KubeCredentials({ kubeconfigFile: file })
  assert.equal((await credentials.access()).headers['authorization'], 'Bearer old')
  write('changing.yaml', config('{token: new}'))
  assert.equal((await credentials.access()).headers['authorization'], 'Bearer old')
  assert.equal(credentials.renew(), true)
  assert.equal((await credentials.access()).headers['authorization'], 'Bearer new')
  assert.equal(credentials.renew(), false)
})

test('an unusable kubeconfig is one clear error that repeats nothing from the file', () => {
  const cases: [string, string | undefined, RegExp][] = [
    [join(dir, 'none.yaml'), undefined, /none\.yaml does not exist; name a kubeconfig/],
    [write('empty.yaml', ''), undefined, /is empty;/],
    [write('yaml.yaml', 'users: [{token: sesame'), undefined, /is not YAML;/],
    [write('shape.yaml', 'users: [{user: {token: sesame}}]'), undefined, /is not valid: users\[0\].name is missing;/],
    [
      write('http.yaml', config('{token: sesame}', 'http://k.test')),
      undefined,
      /"http:\/\/k\.test" is not an https URL;/,
    ],
    [write('good.yaml', config('{token: sesame}')), 'two', /has no context "two"; its contexts are: one, lost$/],
    [join(dir, 'good.yaml'), 'lost', /has no cluster "gone";/],
  ]
  for (const [kubeconfigFile, context, expected] of cases) {
    assert.throws(
      () => new KubeCredentials({ kubeconfigFile, ...(context !== undefined && { context }) }),
      (error) => {
        assert.ok(error instanceof UserError)
        const text = `${error.message}; ${error.fix}`
        assert.match(text, expected)
        assert.doesNotMatch(text, /sesame/)
        return true
      },
    )
  }
})

test('a plugin that fails is named without what it printed', async () => {
  const cases: [string, RegExp][] = [
    ["{exec: {command: sh, args: [-c, 'echo sesame']}}", /: the plugin printed no ExecCredential$/],
    ["{exec: {command: sh, args: [-c, 'echo not signed in >&2; exit 3']}}", /: not signed in$/],
    ['{exec: {command: portcullis-no-such-plugin}}', /: portcullis-no-such-plugin does not exist$/],
  ]
  for (const [user, expected] of cases) {
    const credentials = new KubeCredentials({ kubeconfigFile: write('plugin.yaml', config(user)) })
    await assert.rejects(credentials.access(), (error) => {
      assert.ok(error instanceof Error)
      assert.match(error.message, expected)
      assert.doesNotMatch(error.message, /sesame/)
      return true
    })
  }
})
