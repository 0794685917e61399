// The files of the Helm chart that are made of something else: its values, their schema and their documentation of one table; CRDs, rights,
// webhooks, alerts and dashboards of deploy/. They are committed, so that the chart works from a checkout and in the package; test/repository/docs.test.ts compares them.

import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { VALUES } from './values.ts'
import { type Group, isGroup, type Value, type ValueSchema } from './values-table.ts'

const ROOT = resolve(import.meta.dirname, '../..')
export const CHART = 'deploy/helm/portcullis'
export const UPDATE_COMMAND = 'UPDATE=1 node --test test/chart/render.test.ts'
const GENERATED = `Generated; to regenerate it: ${UPDATE_COMMAND}`
const WIDTH = 120

/** Path from the root of the repository -> text. */
export function chartFiles(): Map<string, string> {
  return new Map([
    [`${CHART}/Chart.yaml`, chartYaml()],
    [`${CHART}/values.yaml`, valuesYaml()],
    [`${CHART}/values.schema.json`, `${JSON.stringify(valuesSchema(), undefined, 2)}\n`],
    [`${CHART}/README.md`, readme()],
    [`${CHART}/files/rbac.yaml`, rbac()],
    ...readdirSync(join(ROOT, 'deploy/webhook')).map((name): [string, string] => [
      `${CHART}/files/webhook/${name}`,
      read(`deploy/webhook/${name}`),
    ]),
    ...readdirSync(join(ROOT, 'deploy/crds')).map((name): [string, string] => [
      `${CHART}/files/crds/${name}`,
      keptCrd(read(`deploy/crds/${name}`)),
    ]),
    [`${CHART}/files/crds/kustomization.yaml`, crdsKustomization()],
    [`${CHART}/files/rules.yaml`, read('deploy/prometheus/rules.yaml')],
    ...readdirSync(join(ROOT, 'deploy/grafana')).map((name): [string, string] => [
      `${CHART}/files/dashboards/${name}`,
      read(`deploy/grafana/${name}`),
    ]),
  ])
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function chartYaml(): string {
  const version = Reflect.get(Object(JSON.parse(read('package.json'))), 'version')
  return `# ${GENERATED}
apiVersion: v2
name: portcullis
description: Kubernetes-aware layer-7 API gateway for kube-apiservers
type: application
version: ${version}
appVersion: ${version}
# matchLabelKeys of topologySpreadConstraints, unhealthyPodEvictionPolicy.
kubeVersion: ">=1.31.0-0"
`
}

/** Every value with its default, each under a comment. */
function valuesYaml(): string {
  const lines = [`# Values of the chart, with their defaults. ${GENERATED}`]
  const add = ({ members }: Group, indent: string): void => {
    for (const [name, entry] of Object.entries(members)) {
      if (indent === '') lines.push('')
      if (entry.meaning !== '') lines.push(...comment(plain(entry.meaning), indent))
      if (!isGroup(entry)) lines.push(...valueLines(name, entry, indent))
      else if (Object.values(entry.members).every((member) => !isGroup(member) && member.fallback === undefined)) {
        lines.push(`${indent}${name}: {}`)
      } else {
        lines.push(`${indent}${name}:`)
        add(entry, `${indent}  `)
      }
    }
  }
  add(VALUES, '')
  return `${lines.join('\n')}\n`
}

function valueLines(name: string, { fallback }: Value, indent: string): string[] {
  if (fallback === undefined) return [`${indent}# ${name}:`]
  const text = stringify({ [name]: fallback }, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })
  return text
    .trimEnd()
    .split('\n')
    .map((line) => indent + line)
}

function comment(text: string, indent: string): string[] {
  const lines: string[] = []
  let line = `${indent}#`
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line)
      line = `${indent}#`
    }
    line += ` ${word}`
  }
  return [...lines, line]
}

/** Markdown without its marks. */
function plain(markdown: string): string {
  return markdown.replaceAll('`', '').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
}

/** A value that the chart does not know is refused. */
function valuesSchema(): ValueSchema {
  return { $schema: 'http://json-schema.org/draft-07/schema#', title: 'portcullis', ...groupSchema(VALUES) }
}

function groupSchema({ meaning, members, schema }: Group): ValueSchema {
  const properties = Object.entries(members).map(([name, entry]): [string, ValueSchema] => [
    name,
    isGroup(entry) ? groupSchema(entry) : described(entry),
  ])
  return {
    type: 'object',
    ...(meaning !== '' && { description: plain(meaning) }),
    additionalProperties: false,
    properties: Object.fromEntries(properties),
    ...schema,
  }
}

function described({ meaning, schema }: Value): ValueSchema {
  return meaning === '' ? schema : { ...schema, description: plain(meaning) }
}

/** `deploy/helm/portcullis/README.md`, with the table between its two marks. */
function readme(): string {
  const [head = '', rest = ''] = read(`${CHART}/README.md`).split('<!-- values -->\n')
  const [, tail = ''] = rest.split('<!-- end of values -->\n')
  const rows: string[] = []
  const add = ({ members }: Group, path: string): void => {
    for (const [name, entry] of Object.entries(members)) {
      const at = `${path}${name}`
      if (isGroup(entry)) {
        if (entry.meaning !== '') rows.push(`| **\`${at}\`** | | ${entry.meaning} |`)
        add(entry, `${at}.`)
      } else rows.push(`| \`${at}\` | ${defaultCell(entry.fallback)} | ${meaningCell(entry)} |`)
    }
  }
  add(VALUES, '')
  const table = ['| value | default | meaning |', '|---|---|---|', ...rows].join('\n')
  return `${head}<!-- values -->\n\n${table}\n\n<!-- end of values -->\n${tail}`
}

function defaultCell(fallback: unknown): string {
  if (fallback === undefined || fallback === '') return ''
  return `\`${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}\``
}

function meaningCell({ meaning, schema }: Value): string {
  const options = schema['enum']
  if (!Array.isArray(options) || options.every((option) => meaning.includes(String(option)))) return meaning
  const list = options.map((option) => (option === '' ? 'empty' : `\`${option}\``)).join(', ')
  return meaning === '' ? list : `${list}; ${meaning}`
}

/** Which values bring which rights of deploy/rbac; the last column of a row of files/rbac.yaml. */
const RBAC_FILES = {
  'metrics-reviews': 'metricsReviews',
  'control-cluster': 'control',
  'protection-core': 'protectionCore',
  'protection-generator': 'generator',
  insight: 'admin',
}
/** The chart brings the CRDs itself. */
const NOT_OF_THE_CHART = new Set(['portcullis-control-crds'])

/** Roles of deploy/rbac as data: the template gives them the release's names. */
function rbac(): string {
  const roles: object[] = []
  for (const [file, part] of Object.entries(RBAC_FILES)) {
    const objects = parseAllDocuments(read(`deploy/rbac/${file}.yaml`)).map((document) => document.toJS())
    const bindings = objects.filter(({ kind }) => kind.endsWith('Binding'))
    for (const { kind, metadata, rules } of objects) {
      if (!/^(Cluster)?Role$/.test(kind) || NOT_OF_THE_CHART.has(metadata.name)) continue
      const bound = bindings.some(({ kind: binding, metadata: of, roleRef }) => {
        return binding === `${kind}Binding` && roleRef.name === metadata.name && of.namespace === metadata.namespace
      })
      roles.push({ part: bound ? part : 'unbound', kind, ...namesOf(metadata), rules })
    }
    for (const { kind, metadata, roleRef } of bindings) {
      const ours = objects.some(({ kind: role, metadata: of }) => role === roleRef.kind && of.name === roleRef.name)
      // A binding to a role that every cluster has.
      if (!ours) roles.push({ part, kind: kind.replace('Binding', ''), ...namesOf(metadata), roleRef: roleRef.name })
    }
  }
  return `# Of deploy/rbac. ${GENERATED}\n${stringify({ roles }, { lineWidth: WIDTH, aliasDuplicateObjects: false })}`
}

function namesOf({ name, namespace }: { name: string; namespace?: string }): object {
  return { name, ...(namespace !== undefined && { namespace }) }
}

/** Helm leaves it when the release is uninstalled: with a CRD, all its objects would go. */
function keptCrd(text: string): string {
  const marked = text
    .replace(/^metadata:\n/m, 'metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n')
    .replace(/^#.*\n/, `# Of deploy/crds. ${GENERATED}\n`)
  if (parse(marked).metadata.annotations?.['helm.sh/resource-policy'] !== 'keep') {
    throw new Error('a CRD of deploy/crds has annotations of its own')
  }
  return marked
}

function crdsKustomization(): string {
  const resources = readdirSync(join(ROOT, 'deploy/crds'))
  return `# ${GENERATED}\n${stringify({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources,
  })}`
}
