// What kubectl has to be able to do with UpstreamClusters and PodProtectors, wherever they live: in the embedded API server,
// or as custom resources of a cluster.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { stringify } from 'yaml'
import { waitFor } from '../wait.ts'
import { type KubectlResult, kubectl, type RunningKubectl, startKubectl } from './kubectl.ts'

export interface KubectlSubject {
  /** The kubeconfig of an administrator. */
  readonly kubeconfig: string
  stop(): Promise<void>
}

const NAME = 'kubectl.example.com'
const ENDPOINT = 'https://10.0.0.1:6443'

function manifest(spec: object = {}, metadata: object = {}): string {
  return stringify({
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: NAME, ...metadata },
    spec: {
      servers: [{ endpoint: ENDPOINT }],
      clientConfig: { bearerToken: Buffer.from('token').toString('base64'), insecure: true },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...spec,
    },
  })
}

/** Registers the tests. @param start the kinds are served when it resolves */
export function kubectlSuite(name: string, start: () => Promise<KubectlSubject>): void {
  describe(`kubectl: ${name}`, () => {
    let subject: KubectlSubject
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-kubectl-suite-'))
    const file = (text: string, base = 'object.yaml'): string => {
      writeFileSync(join(dir, base), text)
      return join(dir, base)
    }
    const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<KubectlResult> =>
      kubectl(args, { kubeconfig: subject.kubeconfig, home: dir, env })
    const ok = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
      const { code, stdout, stderr } = await run(args, env)
      assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stdout}${stderr}`)
      return stdout
    }
    const fails = async (args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await run(args)
      assert.notEqual(code, 0, `kubectl ${args.join(' ')}: ${stdout}`)
      return stderr
    }
    const endpoint = (): Promise<string> => ok(['get', 'uc', NAME, '-o', 'jsonpath={.spec.servers[0].endpoint}'])

    before(async () => {
      subject = await start()
    })
    after(async () => {
      await subject.stop()
      rmSync(dir, { recursive: true, force: true })
    })
    beforeEach(async () => {
      await ok(['delete', 'uc', NAME, '--ignore-not-found'])
    })

    test('api-resources and api-versions', async () => {
      const resources = await ok(['api-resources', '--no-headers'])
      assert.match(resources, /^upstreamclusters +uc +proxy\.kubegateway\.io\/v1alpha1 +false +UpstreamCluster$/m)
      assert.match(resources, /^podprotectors +\S+ +podseidon\.kubewharf\.io\/v1alpha1 +true +PodProtector$/m)
      assert.match(await ok(['api-versions']), /^proxy\.kubegateway\.io\/v1alpha1$/m)
    })

    test('explain: every field has a description', async () => {
      // A kube-apiserver publishes the schema of a new CRD only some time after it serves its objects.
      for (const kind of ['uc', 'podprotectors']) {
        await waitFor(`the schema of ${kind}`, async () => (await run(['explain', kind])).code === 0)
      }
      assert.match(await ok(['explain', 'uc.spec.degrade.mode']), /^DESCRIPTION:\n +\S/m)
      const tree = await ok(['explain', 'uc', '--recursive'])
      for (const field of ['spec', 'servers', 'dispatchPolicies', 'status', 'conditions']) {
        assert.match(tree, new RegExp(`^ *${field}\\t`, 'm'))
      }
      assert.doesNotMatch(await ok(['explain', 'uc.spec']), /<no description>/)
      assert.doesNotMatch(await ok(['explain', 'podprotectors.spec']), /<no description>/)
      assert.match(await fails(['explain', 'uc.spec.nothing']), /field "nothing" does not exist/)
    })

    test('create, get, describe, delete', async () => {
      assert.equal(
        await ok(['create', '-f', file(manifest())]),
        `upstreamcluster.proxy.kubegateway.io/${NAME} created\n`,
      )
      assert.match(await fails(['create', '-f', file(manifest())]), /AlreadyExists/)
      const table = await ok(['get', 'uc'])
      assert.match(table, /^NAME +READY +.*AGE/)
      assert.match(table, new RegExp(`^${NAME} `, 'm'))
      assert.match(await ok(['get', 'uc', '-o', 'wide']), /^NAME .*AGE +.*REASON/)
      assert.match(
        await ok(['get', 'upstreamclusters.proxy.kubegateway.io', '-o', 'name']),
        new RegExp(`/${NAME}$`, 'm'),
      )
      assert.match(await ok(['describe', 'uc', NAME]), /^Name: +kubectl\.example\.com$/m)
      assert.match(await ok(['delete', 'uc', NAME]), /deleted/)
      assert.match(await fails(['get', 'uc', NAME]), /NotFound/)
    })

    test('create with an unknown field, and without a required one', async () => {
      const unknown = await fails(['create', '-f', file(manifest({ wrong: 1 }))])
      assert.match(unknown, /strict decoding error: unknown field "spec\.wrong"/)
      const { code, stderr } = await run(['create', '--validate=warn', '-f', file(manifest({ wrong: 1 }))])
      assert.equal(code, 0, stderr)
      assert.match(stderr, /Warning: unknown field "spec\.wrong"/)
      const missing = await fails(['replace', '-f', file(manifest({ servers: undefined }))])
      assert.match(missing, /spec\.servers: Required value/)
    })

    test('create --dry-run=server', async () => {
      assert.match(await ok(['create', '--dry-run=server', '-f', file(manifest())]), /created \(server dry run\)/)
      assert.match(await fails(['get', 'uc', NAME]), /NotFound/)
    })

    test('apply, diff, apply again', async () => {
      assert.match(await ok(['apply', '-f', file(manifest())]), /created/)
      assert.match(await ok(['apply', '-f', file(manifest())]), /unchanged/)
      const changed = file(manifest({ servers: [{ endpoint: 'https://10.0.0.2:6443' }] }))
      const { code, stdout } = await run(['diff', '-f', changed])
      assert.equal(code, 1)
      assert.match(stdout, /^\+ +- endpoint: https:\/\/10\.0\.0\.2:6443$/m)
      assert.equal(await endpoint(), ENDPOINT)
      assert.match(await ok(['apply', '-f', changed]), /configured/)
      assert.equal(await endpoint(), 'https://10.0.0.2:6443')
      // A status that is written while kubectl compares is a difference.
      await waitFor('no difference', async () => (await run(['diff', '-f', changed])).code === 0)
    })

    test('apply --server-side, and a conflict', async () => {
      assert.match(await ok(['apply', '--server-side', '-f', file(manifest())]), /serverside-applied/)
      const changed = file(manifest({ servers: [{ endpoint: 'https://10.0.0.2:6443' }] }))
      const conflict = await fails(['apply', '--server-side', '--field-manager=other', '-f', changed])
      assert.match(conflict, /Apply failed with 1 conflict: conflict with "kubectl": \.spec\.servers/)
      assert.equal(await endpoint(), ENDPOINT)
      await ok(['apply', '--server-side', '--field-manager=other', '--force-conflicts', '-f', changed])
      assert.equal(await endpoint(), 'https://10.0.0.2:6443')
      const managers = await ok(['get', 'uc', NAME, '-o', 'jsonpath={.metadata.managedFields[*].manager}'])
      assert.deepEqual(managers.split(' ').sort(), ['kubectl', 'other'])
    })

    test('apply --server-side takes over from apply', async () => {
      await ok(['apply', '-f', file(manifest())])
      const changed = file(manifest({ servers: [{ endpoint: 'https://10.0.0.3:6443' }] }))
      assert.match(await ok(['apply', '--server-side', '-f', changed]), /serverside-applied/)
      assert.equal(await endpoint(), 'https://10.0.0.3:6443')
    })

    test('edit', async () => {
      await ok(['create', '-f', file(manifest())])
      const editor = { KUBE_EDITOR: 'sed -i s/10.0.0.1:6443/10.0.0.4:6443/' }
      assert.match(await ok(['edit', 'uc', NAME], editor), /edited/)
      assert.equal(await endpoint(), 'https://10.0.0.4:6443')
      assert.match((await run(['edit', 'uc', NAME], { KUBE_EDITOR: 'true' })).stderr, /no changes made/)
    })

    test('patch: merge, JSON, and strategic, which custom resources do not take', async () => {
      await ok(['create', '-f', file(manifest())])
      const degrade = '{"spec":{"degrade":{"mode":"ReadOnly","reason":"incident 7"}}}'
      assert.match(await ok(['patch', 'uc', NAME, '--type', 'merge', '-p', degrade]), /patched/)
      assert.equal(await ok(['get', 'uc', NAME, '-o', 'jsonpath={.spec.degrade.mode}']), 'ReadOnly')
      await ok(['patch', 'uc', NAME, '--type', 'json', '-p', '[{"op":"remove","path":"/spec/degrade"}]'])
      assert.equal(await ok(['get', 'uc', NAME, '-o', 'jsonpath={.spec.degrade}']), '')
      assert.match(await fails(['patch', 'uc', NAME, '-p', degrade]), /strategic-merge-patch\+json is not supported/)
    })

    test('replace', async () => {
      await ok(['create', '-f', file(manifest())])
      const changed = file(manifest({ servers: [{ endpoint: 'https://10.0.0.5:6443' }] }))
      // kubectl reads the version that it replaces: a status that is written right then is a Conflict, with any apiserver.
      assert.match(await waitFor('replace', () => ok(['replace', '-f', changed])), /replaced/)
      assert.equal(await endpoint(), 'https://10.0.0.5:6443')
      const stale = file(manifest({}, { resourceVersion: '1' }))
      assert.match(await fails(['replace', '-f', stale]), /the object has been modified/)
    })

    test('annotate and label', async () => {
      await ok(['create', '-f', file(manifest())])
      assert.match(await ok(['label', 'uc', NAME, 'tier=front']), /labeled/)
      assert.match(await ok(['annotate', 'uc', NAME, 'note=hello']), /annotated/)
      assert.match(await ok(['get', 'uc', '-l', 'tier=front', '-o', 'name']), new RegExp(NAME))
      assert.equal(await ok(['get', 'uc', '-l', 'tier!=front,tier', '-o', 'name']), '')
      assert.match(await fails(['label', 'uc', NAME, 'tier=back']), /already has a value/)
      await ok(['label', 'uc', NAME, 'tier-'])
      assert.equal(await ok(['get', 'uc', '-l', 'tier', '-o', 'name']), '')
    })

    test('get -w shows changes as they come', async () => {
      await ok(['create', '-f', file(manifest())])
      const options = { kubeconfig: subject.kubeconfig, home: dir }
      const columns = 'NAME:.metadata.name,MODE:.spec.degrade.mode'
      const custom: RunningKubectl = await startKubectl(['get', 'uc', '-w', '-o', `custom-columns=${columns}`], options)
      const table: RunningKubectl = await startKubectl(['get', 'uc', NAME, '-w'], options)
      try {
        await custom.output(new RegExp(`${NAME} +<none>`))
        await table.output(new RegExp(`^${NAME} `, 'm'))
        await ok(['patch', 'uc', NAME, '--type', 'merge', '-p', '{"spec":{"degrade":{"mode":"Freeze","reason":"x"}}}'])
        await custom.output(new RegExp(`${NAME} +Freeze`))
        // A second row of the same object, under the same header.
        await table.output(new RegExp(`^${NAME} [^\\n]*\\n${NAME} `, 'm'))
        assert.equal(table.stdout().match(/^NAME/gm)?.length, 1)
      } finally {
        await custom.stop()
        await table.stop()
      }
    })

    test('wait: for a condition, for a field, for the deletion', async () => {
      await ok(['create', '-f', file(manifest())])
      const options = { kubeconfig: subject.kubeconfig, home: dir }
      const waiting = await startKubectl(['wait', '--for=condition=Ready', `uc/${NAME}`, '--timeout=50s'], options)
      const condition = {
        type: 'Ready',
        status: 'True',
        reason: 'Test',
        message: 'set by the test',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }
      const status = JSON.stringify({ status: { conditions: [condition] } })
      await ok(['patch', 'uc', NAME, '--subresource=status', '--type', 'merge', '-p', status])
      const { code, stdout, stderr } = await waiting.done
      assert.equal(code, 0, stderr)
      assert.match(stdout, /condition met/)
      assert.match(await ok(['get', 'uc', NAME]), new RegExp(`^${NAME} +True`, 'm'))
      await ok(['wait', `--for=jsonpath={.spec.servers[0].endpoint}=${ENDPOINT}`, `uc/${NAME}`, '--timeout=50s'])
      const gone = await startKubectl(['wait', '--for=delete', `uc/${NAME}`, '--timeout=50s'], options)
      await ok(['delete', 'uc', NAME])
      assert.equal((await gone.done).code, 0)
    })

    test('delete: waits for finalizers, by label, all of them, with cascade', async () => {
      await ok(['create', '-f', file(manifest({}, { finalizers: ['test.example.com/hold'] }))])
      const options = { kubeconfig: subject.kubeconfig, home: dir }
      const deleting = await startKubectl(['delete', 'uc', NAME], options)
      await deleting.output(/deleted/)
      assert.match(await ok(['get', 'uc', NAME, '-o', 'jsonpath={.metadata.deletionTimestamp}']), /Z$/)
      await ok(['patch', 'uc', NAME, '--type', 'merge', '-p', '{"metadata":{"finalizers":null}}'])
      assert.equal((await deleting.done).code, 0)
      await ok(['create', '-f', file(manifest({}, { labels: { gone: 'soon' } }))])
      assert.match(await ok(['delete', 'uc', '-l', 'gone=soon']), /deleted/)
      await ok(['create', '-f', file(manifest())])
      assert.match(await ok(['delete', 'uc', NAME, '--cascade=background', '--dry-run=server']), /server dry run/)
      assert.match(await ok(['delete', 'uc', '--all']), /deleted/)
    })

    test('namespaced objects, by file and by name', async () => {
      const protector = stringify({
        apiVersion: 'podseidon.kubewharf.io/v1alpha1',
        kind: 'PodProtector',
        metadata: { name: 'web', namespace: 'default' },
        spec: { minAvailable: 2, minReadySeconds: 5, selector: { matchLabels: { app: 'web' } } },
      })
      await ok(['apply', '-f', file(protector)])
      assert.match(await ok(['get', 'podprotectors', '-A']), /^default +web /m)
      assert.match(await ok(['get', 'podprotectors', '-n', 'kube-system'], {}), /^$/)
      const elsewhere = file(protector.replace('namespace: default', 'namespace: nowhere'))
      assert.match(await fails(['create', '-f', elsewhere]), /namespaces "nowhere" not found/)
      await ok(['delete', 'podprotector', 'web'])
    })

    test('version, and who one is', async () => {
      assert.match(await ok(['version']), /^Server Version: v1\./m)
      assert.match(await ok(['auth', 'whoami']), /^Username +\S/m)
      assert.match(await ok(['auth', 'can-i', 'patch', 'uc']), /^yes$/m)
    })
  })
}
