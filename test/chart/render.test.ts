// What the chart renders: against golden files, the settings of `serve`, and deploy/. `UPDATE=1 node --test test/chart/render.test.ts` writes
// all that is generated: the chart's own files, the Kustomize bases, and the golden file of everything at once.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { parse, parseAllDocuments, parseDocument, stringify } from 'yaml'
import { chartFiles, UPDATE_COMMAND } from '../../build/chart/chart-files.ts'
import { CHART_SETTINGS } from '../../build/chart/setting-values.ts'
import { VALUES } from '../../build/chart/values.ts'
import { type Group, isGroup } from '../../build/chart/values-table.ts'
import { ALL_SETTINGS, loadConfig } from '../../src/process/config/config.ts'
import {
  API_VERSIONS,
  CHART,
  helm,
  type KubeObject,
  nameOf,
  objectsOf,
  podOf,
  render,
  template,
} from '../harness/install/helm.ts'
import { kubectl } from '../harness/kubectl/kubectl.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const VALUES_DIR = join(import.meta.dirname, 'values')
const EMBEDDED = ['--values', join(VALUES_DIR, 'embedded.yaml')]
const EVERYTHING = ['--values', join(VALUES_DIR, 'everything.yaml'), ...API_VERSIONS]
const EMBEDDED_EVERYTHING = ['--values', join(VALUES_DIR, 'embedded-everything.yaml'), ...API_VERSIONS]
const SHAPES: readonly (readonly [name: string, args: readonly string[]])[] = [
  ['kubernetes', []],
  ['embedded', EMBEDDED],
  ['everything', EVERYTHING],
  ['embedded with everything', EMBEDDED_EVERYTHING],
]
const ADMIN = ['--set=admin.enabled=true,admin.tls.secretName=admin']
const KUSTOMIZE = join(ROOT, 'deploy/kustomize')

/** Compares a generated file with the one that is committed; with UPDATE=1 it writes it. */
function upToDate(path: string, text: string): void {
  const file = join(ROOT, path)
  if (process.env['UPDATE'] === '1') {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  assert.equal(readFileSync(file, 'utf8'), text, `${path} is out of date; to regenerate it: ${UPDATE_COMMAND}`)
}

test('the files of the chart are those of its table of values and of deploy/', () => {
  for (const [path, text] of chartFiles()) upToDate(path, text)
})

for (const [name, args] of SHAPES) {
  test(`helm lint --strict: ${name}`, async () => {
    const valuesOnly = args.filter((arg) => !arg.startsWith('--api-versions'))
    const { code, stdout, stderr } = await helm([
      'lint',
      '--strict',
      '--namespace=portcullis-system',
      ...valuesOnly,
      CHART,
    ])
    assert.equal(code, 0, stdout + stderr)
  })

  test(`what ${name} gives to the gateway are settings that it takes`, async () => {
    const [container] = podOf(await render(args))['spec'].containers
    const [command, ...flags] = container.args
    assert.equal(command, 'serve')
    const given: Record<string, unknown> = {}
    for (const flag of flags) {
      const [, words = '', value = ''] = /^--([a-z0-9-]+)=(.*)$/.exec(flag) ?? assert.fail(flag)
      const setting = ALL_SETTINGS.find((one) => one.flag === `--${words}`) ?? assert.fail(`there is no --${words}`)
      const before = given[setting.name]
      // As the kubelet does it with variables of the container.
      const text = value.replace('$(POD_IP)', 'fd00::1')
      given[setting.name] = setting.repeatable ? [...(Array.isArray(before) ? before : []), text] : text
    }
    const config = loadConfig({ flags: given, env: {}, readFile: () => '' })
    assert.equal(config.source, name.startsWith('embedded') ? 'embedded' : 'kubernetes')
  })
}

/** Objects without what only Helm needs. */
function withoutHelm(objects: readonly KubeObject[]): KubeObject[] {
  return objects.map((object) => {
    const { 'helm.sh/chart': _chart, 'app.kubernetes.io/managed-by': _by, ...labels } = object['metadata'].labels ?? {}
    const { labels: _, ...metadata } = object['metadata']
    return { ...object, metadata: { ...metadata, ...(Object.keys(labels).length > 0 && { labels }) } }
  })
}

function isCrd({ kind }: KubeObject): boolean {
  return kind === 'CustomResourceDefinition'
}

const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'portcullis-system', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
}

/** In Kustomize's bases, which are the golden renders of the two shapes, comments of the templates are kept. */
async function kustomizeText(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await template([...args, '--skip-tests', '--set=crds.install=false'])
  assert.equal(code, 0, stderr)
  const documents = parseAllDocuments(stdout).filter((document) => document.toJS() !== null)
  for (const document of documents) {
    document.commentBefore = null
    for (const label of ['helm.sh/chart', 'app.kubernetes.io/managed-by'])
      document.deleteIn(['metadata', 'labels', label])
  }
  const texts = [parseDocument(stringify(NAMESPACE)), ...documents].map((document) =>
    document
      .toString({ lineWidth: 0 })
      .replace(/^---\n/, '')
      .replace(/^# Source: .*\n/gm, ''),
  )
  return `# helm template with the chart's defaults for this shape; to regenerate it: ${UPDATE_COMMAND}\n${texts.join('---\n')}`
}

for (const shape of ['kubernetes', 'embedded']) {
  const args = shape === 'embedded' ? EMBEDDED : []

  test(`Kustomize base ${shape}: up to date, and the objects of the chart`, async () => {
    upToDate(`deploy/kustomize/${shape}/objects.yaml`, await kustomizeText(args))
    const built = await kubectl(['kustomize', join(KUSTOMIZE, shape)], { kubeconfig: '/dev/null' })
    assert.equal(built.code, 0, built.stderr)
    const byName = (objects: readonly KubeObject[]): Map<string, KubeObject> =>
      new Map(objects.map((object) => [nameOf(object), object]))
    const expected = byName([NAMESPACE, ...withoutHelm(await render([...args, '--skip-tests']))])
    assert.deepEqual(byName(objectsOf(built.stdout)), expected)
  })
}

test('golden render: everything at once', async () => {
  // CRDs, rights and the dashboard are compared elsewhere.
  const objects = (await render([...EVERYTHING, '--skip-tests'])).filter(
    ({ kind, metadata }) => !/^CustomResourceDefinition|Role/.test(kind) && !metadata.name.endsWith('-dashboard'),
  )
  const text = objects
    .map((object) => stringify(object, { lineWidth: 120, aliasDuplicateObjects: false }))
    .join('---\n')
  upToDate('test/chart/golden/everything.yaml', text)
})

test('CRDs are those of deploy/crds, and stay when the release goes', async () => {
  const rendered = new Map((await render()).filter(isCrd).map((crd) => [crd['metadata'].name, crd]))
  const files = readdirSync(join(ROOT, 'deploy/crds'))
  assert.equal(rendered.size, files.length)
  for (const file of files) {
    const crd = parse(readFileSync(join(ROOT, 'deploy/crds', file), 'utf8'))
    crd.metadata.annotations = { 'helm.sh/resource-policy': 'keep' }
    assert.deepEqual(rendered.get(crd.metadata.name), crd)
  }
  assert.deepEqual((await render(EMBEDDED)).filter(isCrd), [])
  assert.deepEqual((await render(['--set=crds.install=false'])).filter(isCrd), [])
})

test('rights are those of deploy/rbac', async () => {
  const rendered = (
    await render([...ADMIN, '--set=protection.generatorConfig=x', '--set=fullnameOverride=portcullis'])
  ).filter(({ kind }) => kind.endsWith('Role') || kind.endsWith('RoleBinding'))
  const wanted = ['control-cluster', 'protection-core', 'protection-generator', 'metrics-reviews', 'insight']
    .flatMap((file) => objectsOf(readFileSync(join(ROOT, `deploy/rbac/${file}.yaml`), 'utf8')))
    .filter(({ kind }) => kind.endsWith('Role') || kind.endsWith('RoleBinding'))
    // The chart brings the CRDs itself.
    .filter(({ metadata }) => metadata.name !== 'portcullis-control-crds')
  const rights = (objects: readonly KubeObject[]): unknown =>
    new Map(objects.map((object) => [nameOf(object), [object['rules'], object['roleRef'], object['subjects']]]))
  assert.deepEqual(rights(rendered), rights(wanted))
  const kinds = (await render(EMBEDDED)).map(({ kind }) => kind)
  assert.ok(!kinds.some((kind) => kind.includes('Role')), 'an embedded gateway needs no rights')
})

test('webhooks are those of deploy/webhook, but for where they are and which clients they leave out', async () => {
  const rendered = (await render(EVERYTHING)).filter(({ kind }) => kind === 'ValidatingWebhookConfiguration')
  const rules = (objects: readonly KubeObject[]): KubeObject[] =>
    objects
      .flatMap(({ webhooks }) => webhooks)
      .map(({ clientConfig: _client, namespaceSelector: _selector, ...rest }) => rest)
      .sort((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1))
  const files = readdirSync(join(ROOT, 'deploy/webhook'))
  const texts = files.map((file) => parse(readFileSync(join(ROOT, 'deploy/webhook', file), 'utf8')))
  assert.deepEqual(rules(rendered), rules(texts))
  const clients = rendered.flatMap(({ webhooks }) => webhooks).map(({ clientConfig }) => clientConfig.service)
  const internal = (await render(EVERYTHING)).find(({ metadata }) => metadata.name === 'portcullis-internal')
  const ports: number[] = internal?.['spec'].ports.map(({ port }: { port: number }) => port)
  for (const { name, port, path } of clients) {
    assert.equal(name, 'portcullis-internal')
    assert.ok(ports.includes(port), `the Service has port ${port}`)
    assert.match(path, port === 9443 ? /^\/admission\/abc$/ : /^\/prod$/)
  }
})

test('the kubelet waits for delay, drain and more', async () => {
  const objects = await render(['--set=shutdown.delaySeconds=20,shutdown.drainSeconds=600,shutdown.marginSeconds=7'])
  const { spec } = podOf(objects)
  assert.equal(spec.terminationGracePeriodSeconds, 627)
  assert.ok(spec.containers[0].args.includes('--shutdown-delay=20s'))
  assert.ok(spec.containers[0].args.includes('--drain-timeout=600s'))
})

test('with an autoscaler the Deployment has no replicas; a single pod has neither budget nor autoscaler', async () => {
  const kinds = (objects: readonly KubeObject[]): string[] => objects.map(({ kind }) => kind)
  const scaled = await render(['--set=autoscaling.enabled=true'])
  const deployment = scaled.find(({ kind }) => kind === 'Deployment')
  assert.ok(deployment !== undefined && !('replicas' in deployment['spec']))
  const embedded = kinds(await render(EMBEDDED))
  assert.ok(!embedded.includes('PodDisruptionBudget') && !embedded.includes('HorizontalPodAutoscaler'))
})

test('Secrets are mounted whole', async () => {
  for (const [, args] of SHAPES) {
    for (const mount of podOf(await render(args))['spec'].containers[0].volumeMounts) assert.ok(!('subPath' in mount))
  }
})

test('the admin listener: on the loopback address of the pod unless it is enabled, then with TLS, a login and the address of the pod', async () => {
  const off = podOf(await render())['spec'].containers[0]
  assert.ok(off.args.includes('--admin-listen=127.0.0.1:9090'))
  assert.ok(!JSON.stringify(off).includes('POD_IP') && !off.args.some((arg: string) => arg.includes('admin-tls')))
  const rendered = await render([...ADMIN, '--set=metrics.tokenSecret.name=metrics'])
  const { args, env, ports, volumeMounts } = podOf(rendered)['spec'].containers[0]
  for (const flag of ['--admin-listen=0.0.0.0:9090', '--admin-advertise=[$(POD_IP)]:9090'])
    assert.ok(args.includes(flag), flag)
  assert.equal(env.find(({ name }: { name: string }) => name === 'POD_IP').valueFrom.fieldRef.fieldPath, 'status.podIP')
  assert.ok(ports.some(({ name }: { name: string }) => name === 'admin'))
  assert.ok(volumeMounts.some(({ mountPath }: { mountPath: string }) => mountPath === '/etc/portcullis/admin'))
  const names = rendered.map(nameOf).join('\n')
  // What the login needs, also where /metrics has a token of its own.
  for (const part of ['authentication-reader', 'auth-delegator']) assert.match(names, new RegExp(part))
  const embedded = podOf(await render([...EMBEDDED, ...ADMIN]))['spec'].containers[0]
  assert.ok(!JSON.stringify(embedded).includes('POD_IP'), 'there is no other replica')
})

test('who may reach the admin port: peers that the values name, and the other replicas', async () => {
  const rules = async (args: readonly string[]): Promise<KubeObject[]> => {
    const policy = (await render(args)).find(({ kind }) => kind === 'NetworkPolicy')
    return policy?.['spec'].ingress.filter(({ ports }: KubeObject) => ports[0].port === 'admin')
  }
  assert.deepEqual(await rules([]), [])
  assert.deepEqual(await rules(ADMIN), [{ ports: [{ port: 'admin' }] }])
  const [rule] = await rules([...ADMIN, '--set-json=networkPolicy.adminFrom=[{"ipBlock":{"cidr":"10.0.0.0/8"}}]'])
  const matchLabels = { 'app.kubernetes.io/name': 'portcullis', 'app.kubernetes.io/instance': 'portcullis' }
  assert.deepEqual(rule?.['from'], [{ podSelector: { matchLabels } }, { ipBlock: { cidr: '10.0.0.0/8' } }])
})

const WRONG: readonly (readonly [what: string, args: readonly string[], message: RegExp])[] = [
  ['an unknown value', ['--set=replica=2'], /additional properties 'replica' not allowed/],
  ['an unknown value inside', ['--set=image.repo=x'], /at '\/image'.*'repo' not allowed/],
  ['a setting that does not exist', ['--set=settings.logLevl=debug'], /at '\/settings'.*'logLevl' not allowed/],
  ['a setting that the chart sets itself', ['--set=settings.listen=x'], /at '\/settings'.*'listen' not allowed/],
  ['a wrong type', ['--set=replicas=many'], /at '\/replicas'.*got string, want integer/],
  ['a switch in quotes', ['--set-string=rbac.create=false'], /at '\/rbac\/create'.*got string, want boolean/],
  ['two replicas of one store', ['--set=shape=embedded,replicas=2'], /at '\/replicas'.*value must be 1/],
  ['one replica of several', ['--set=replicas=1'], /at '\/replicas'.*minimum.*2/],
  ['an autoscaler of one', ['--set=shape=embedded,autoscaling.enabled=true'], /at '\/autoscaling\/enabled'/],
  ['a hasty autoscaler', ['--set=autoscaling.scaleDownStabilizationSeconds=60'], /scaleDownStabilizationSeconds'.*600/],
  ['a password in the URL', ['--set=redis.url=redis://:secret@redis:6379'], /at '\/redis\/url'.*does not match/],
  ['a digest that is none', ['--set=image.digest=sha256:12'], /at '\/image\/digest'.*does not match/],
  ['another namespace', ['--namespace=elsewhere'], /install with --namespace portcullis-system/],
  ['no CRDs of the Prometheus operator', ['--set=metrics.rules.enabled=true'], /this cluster does not have/],
  [
    'no cert-manager',
    ['--set=certManager.enabled=true,certManager.issuerRef.name=x'],
    /needs the CRDs of cert-manager/,
  ],
  ['an admin listener without TLS', ['--set=admin.enabled=true'], /at '\/admin\/tls\/secretName'.*minLength/],
  ['PROXY headers of anybody', ['--set=proxyProtocol.enabled=true'], /needs proxyProtocol\.from/],
  ['a level of the log that is none', ['--set=settings.logLevel=trace'], /at '\/settings\/logLevel'.*must be one of/],
  [
    'a duration without a unit',
    ['--set-string=settings.idleTimeout=90'],
    /at '\/settings\/idleTimeout'.*does not match/,
  ],
  ['too large a chance', ['--set=settings.goawayChance=0.5'], /at '\/settings\/goawayChance'.*does not match/],
  ['too large a number', ['--set-json=settings={"goawayChance":0.5}'], /at '\/settings\/goawayChance'.*maximum.*0\.02/],
  [
    'one port for two',
    ['--set=ports.health=8443'],
    /ports\.health and ports\.gateway are both 8443: give each its own/,
  ],
  [
    'logins where there is no embedded API server',
    ['--set=settings.controlOidcIssuerUrl=https://login.example.com'],
    /settings\.controlOidcIssuerUrl needs shape=embedded/,
  ],
  ['a webhook without a CA', ['--set=webhooks.validating.enabled=true'], /webhooks\.validating\.caBundle/],
  ['a webhook that no gateway serves', ['--set=webhooks.protection.enabled=true'], /needs protection\.listen=true/],
]

for (const [what, args, message] of WRONG) {
  test(`refused with one clear line: ${what}`, async () => {
    const { code, stdout, stderr } = await template(args)
    assert.notEqual(code, 0)
    assert.equal(stdout, '')
    assert.match(stderr, message)
    const errors = stderr.split('\n').filter((line) => message.test(line))
    assert.equal(errors.length, 1, stderr)
  })
}

/** Paths of all values. */
function paths({ members }: Group, at = ''): string[] {
  return Object.entries(members).flatMap(([name, entry]) =>
    isGroup(entry) ? paths(entry, `${at}${name}.`) : [`${at}${name}`],
  )
}

test('every value is in a template', () => {
  const folder = join(CHART, 'templates')
  const text = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(yaml|tpl|txt)$/.test(name))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
  for (const path of paths(VALUES)) {
    // The first are flags by their names; an issuerRef is passed on whole; the last is Helm's own.
    if (/^(settings|certManager\.issuerRef)\.|^global$/.test(path)) continue
    assert.match(text, new RegExp(`\\.${path.split('.').at(-1)}\\b`), path)
  }
})

test('every setting of the gateway is a value, or set by the chart', () => {
  const names = ALL_SETTINGS.map(({ name }) => name)
  const values = paths(VALUES)
    .filter((path) => path.startsWith('settings.'))
    .map((path) => path.slice('settings.'.length))
  for (const name of CHART_SETTINGS) assert.ok(names.includes(name), `there is no setting ${name}`)
  assert.deepEqual(new Set([...values, ...CHART_SETTINGS]), new Set(names))
})

test('alerts and dashboards are those of deploy/, and link to the runbooks that the values name', async () => {
  const url = 'https://wiki.example.com/portcullis/runbooks'
  const rendered = await render([...EVERYTHING, `--set=metrics.rules.runbookUrl=${url}`])
  const linked = (path: string): string => readFileSync(path, 'utf8').replaceAll('docs/runbooks.md', url)
  const rule = rendered.find(({ kind }) => kind === 'PrometheusRule')
  assert.deepEqual(rule?.['spec'], parse(linked(join(ROOT, 'deploy/prometheus/rules.yaml'))))
  const { data } = rendered.find(({ metadata }) => metadata.name.endsWith('-dashboard')) ?? assert.fail('no dashboards')
  const names = readdirSync(join(ROOT, 'deploy/grafana'))
  assert.equal(names.length, 4)
  const expected = names.map((name) => [`portcullis-${name}`, JSON.parse(linked(join(ROOT, 'deploy/grafana', name)))])
  assert.deepEqual(
    Object.entries(data).map(([name, text]) => [name, JSON.parse(String(text))]),
    expected,
  )
})
