// Output of `portcullis import`: manifests on standard output or in a directory, and human-readable remarks.

import { stringify } from 'yaml'
import { writeManifests } from '../../gateway/io/sources/files/manifest-files.ts'
import type { CommandOutput } from '../command/output.ts'

export interface ImportOutput extends CommandOutput {
  /** Default: everything to `out`. */
  readonly dir?: string
  /** Overwrite existing files. Default false. */
  readonly force?: boolean
}

/** One UpstreamCluster and the objects that belong to it. */
export interface ImportedCluster {
  readonly name: string
  readonly documents: readonly object[]
  /** Differences, missing parts, and manual steps. */
  readonly remarks: readonly Remark[]
}

export interface Remark {
  /** `error`: the gateway would reject the object. */
  readonly severity: 'error' | 'warning' | 'note'
  /** `spec.servers[0]`; '' = the whole object. */
  readonly path: string
  readonly message: string
}

/** Remarks go to `err`, so that standard output is only YAML. @returns the exit code: 1 if an object would be rejected */
export function printImport(imported: readonly ImportedCluster[], { dir, force, out, err }: ImportOutput): number {
  const texts = imported
    .filter(({ documents }) => documents.length > 0)
    .map((one) => [`${one.name}.yaml`, yamlOf(one)] as const)
  if (dir === undefined) out(texts.map(([, text]) => text).join('---\n'))
  else {
    writeManifests(dir, new Map(texts), force ?? false)
    for (const [file] of texts) out(`${dir}/${file}\n`)
  }
  let errors = 0
  for (const { name, remarks } of imported) {
    for (const { severity, path, message } of remarks) {
      if (severity === 'error') errors++
      err(`${severity}: ${name}: ${path === '' ? '' : `${path}: `}${message}\n`)
    }
  }
  return errors === 0 ? 0 : 1
}

/** For kubectl, which reads YAML 1.1, where an unquoted `off` or time is not a string. */
function yamlOf({ documents, remarks }: ImportedCluster): string {
  const comments = remarks.map(({ severity, path, message }) => {
    return `# ${severity}: ${path === '' ? '' : `${path}: `}${message}`.replaceAll('\n', ' ')
  })
  const head = comments.length === 0 ? '' : `${comments.join('\n')}\n`
  return `${head}${documents.map((document) => stringify(document, { lineWidth: 0, schema: 'yaml-1.1' })).join('---\n')}`
}
