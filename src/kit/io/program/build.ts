// Which build of the program runs, and where its files are: the bundle in dist/, or the sources themselves.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** What build/build.ts knows of the sources. */
export interface BuildConstants {
  readonly version: string
  /** Of git, 40 hex digits; '' = not built from a git checkout. */
  readonly commit: string
  /** Files of the checkout had changed since that commit. */
  readonly modified: boolean
  /** Of the commit, RFC 3339. */
  readonly date: string
}

/** Put in place by the build; the sources have none. */
declare const PORTCULLIS_BUILD: BuildConstants

const bundled: BuildConstants | undefined = typeof PORTCULLIS_BUILD === 'undefined' ? undefined : PORTCULLIS_BUILD

export interface Build extends BuildConstants {
  /** `source`: the program runs from its sources, which may change at any time; no commit is named. */
  readonly from: 'bundle' | 'source'
}

export const BUILD: Build = bundled
  ? { ...bundled, from: 'bundle' }
  : { version: versionOfPackage(), commit: '', modified: false, date: '', from: 'source' }

/** As `git describe` would say: `clean` or `dirty`; '' where no commit is known. */
export function treeState({ commit, modified }: BuildConstants): string {
  return commit === '' ? '' : modified ? 'dirty' : 'clean'
}

/** Of the package: `0.1.0`. */
export const VERSION: string = BUILD.version

/** Folders and modules that are found by their path. All modules of the bundle lie in one folder, beside `config`. */
export const PROGRAM_FILES: {
  /** The module of a gateway thread. */
  readonly threadEntry: URL
  /** What exports KubeConfig: a path, or the name of a package. */
  readonly clientNode: string
  /** The examples, which the demo serves. */
  readonly examples: string
  /** The folder of the dashboard's files; '' = they have to be made first. */
  readonly dashboard: string
  /** What makes them; '' in the bundle. */
  readonly dashboardBuild: string
  /** '' in the bundle: only a checkout has one. */
  readonly testHarness: string
} = bundled
  ? {
      threadEntry: beside('gateway-thread.mjs'),
      clientNode: './client-node.mjs',
      examples: fileURLToPath(beside('config')),
      dashboard: fileURLToPath(beside('dashboard')),
      dashboardBuild: '',
      testHarness: '',
    }
  : {
      threadEntry: beside('../../../program/threads/thread/entry.ts'),
      clientNode: '@kubernetes/client-node',
      examples: fileURLToPath(beside('../../../../config')),
      dashboard: '',
      dashboardBuild: fileURLToPath(beside('../../../../build/dashboard.ts')),
      testHarness: fileURLToPath(beside('../../../../test/harness')),
    }

/** How this command is called in texts that are to be copied. */
export const COMMAND: string = bundled ? 'portcullis' : 'bin/portcullis'

function beside(path: string): URL {
  return new URL(path, import.meta.url)
}

function versionOfPackage(): string {
  const manifest: unknown = JSON.parse(readFileSync(beside('../../../../package.json'), 'utf8'))
  return typeof manifest === 'object' && manifest !== null ? String(Reflect.get(manifest, 'version')) : ''
}
