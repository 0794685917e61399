// Helm, and what it renders of the chart.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { binaries } from '../binaries.ts'
import { endWithThisProcess, guarded } from '../process.ts'

export const CHART: string = resolve(import.meta.dirname, '../../../deploy/helm/portcullis')
/** The API versions of the chart's custom resources: `helm template` asks no cluster what it has. */
export const API_VERSIONS: readonly string[] = ['--api-versions=cert-manager.io/v1,monitoring.coreos.com/v1']

export interface HelmResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind
export type KubeObject = Record<string, any>

/** Never throws on a failure of Helm's: look at `code`. */
export async function helm(args: readonly string[], kubeconfig = '/dev/null'): Promise<HelmResult> {
  const program = (await binaries()).helm
  const home = mkdtempSync(join(tmpdir(), 'portcullis-helm-'))
  const child = spawn(...guarded(program, args), {
    env: { ...process.env, HOME: home, KUBECONFIG: kubeconfig, HELM_DATA_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endWithThisProcess(child)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((done, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      rmSync(home, { recursive: true, force: true })
      done({ code: code ?? -1, stdout, stderr })
    })
  })
}

/** `helm template` of the chart as release `portcullis` in `portcullis-system`. */
export function template(args: readonly string[] = []): Promise<HelmResult> {
  return helm(['template', 'portcullis', CHART, '--namespace=portcullis-system', ...args])
}

/** What `template` renders. @throws {Error} when it fails */
export async function render(args: readonly string[] = []): Promise<KubeObject[]> {
  const { code, stdout, stderr } = await template(args)
  if (code !== 0) throw new Error(`helm template ${args.join(' ')}: ${stderr}`)
  return objectsOf(stdout)
}

export function objectsOf(yaml: string): KubeObject[] {
  return parseAllDocuments(yaml)
    .map((document): unknown => document.toJS())
    .filter((object): object is KubeObject => typeof object === 'object' && object !== null)
}

/** `Role/default/portcullis-control`; without a namespace where it has none. */
export function nameOf({ kind, metadata }: KubeObject): string {
  return [kind, metadata.namespace, metadata.name].filter((part) => part !== undefined).join('/')
}

/** The template of the pods, as a Pod. */
export function podOf(objects: readonly KubeObject[]): KubeObject {
  const workload = objects.find(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
  if (workload === undefined) throw new Error('no workload was rendered')
  const { template, volumeClaimTemplates = [] } = workload['spec']
  const { metadata } = template
  const namespace = workload['metadata'].namespace
  // As the controller of StatefulSets does it.
  const claims = volumeClaimTemplates.map(({ metadata: { name } }: KubeObject) => {
    return { name, persistentVolumeClaim: { claimName: `${name}-${workload['metadata'].name}-0` } }
  })
  const spec = { ...template.spec, volumes: [...claims, ...(template.spec.volumes ?? [])] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'template', namespace }, spec }
}
