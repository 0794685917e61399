// The running build, and the locations of its files: the bundle in dist/, or the sources themselves.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Facts that build/build.ts knows about the sources. */
export interface BuildConstants {
  readonly version: string
  /** Git commit, 40 hex digits; '' = not built from a git checkout. */
  readonly commit: string
  /** The checkout had uncommitted changes. */
  readonly modified: boolean
  /** Commit date, RFC 3339. */
  readonly date: string
}

/** Defined by the build; undefined when running from sources. */
declare const PORTCULLIS_BUILD: BuildConstants

const bundled: BuildConstants | undefined = typeof PORTCULLIS_BUILD === 'undefined' ? undefined : PORTCULLIS_BUILD

export interface Build extends BuildConstants {
  /** `source`: the program runs from its sources, which may change at any time; no commit is given. */
  readonly from: 'bundle' | 'source'
}

export const BUILD: Build = bundled
  ? { ...bundled, from: 'bundle' }
  : { version: versionOfPackage(), commit: '', modified: false, date: '', from: 'source' }

/** Like `git describe`: `clean` or `dirty`; '' if no commit is known. */
export function treeState({ commit, modified }: BuildConstants): string {
  return commit === '' ? '' : modified ? 'dirty' : 'clean'
}

/** The package's version: `0.1.0`. */
export const VERSION: string = BUILD.version

/** Directories and modules located by path. All modules of the bundle are in one directory, next to `config`. */
export const PROGRAM_FILES: {
  /** The module of a gateway thread. */
  readonly threadEntry: URL
  /** The module that exports KubeConfig: a path, or a package name. */
  readonly clientNode: string
  /** The examples served by the demo. */
  readonly examples: string
  /** The directory of the dashboard's files; '' = they must be built first. */
  readonly dashboard: string
  /** Builds them; '' in the bundle. */
  readonly dashboardBuild: string
  /** '' in the bundle: only a checkout has one. */
  readonly testHarness: string
  /** The package that is the demo's OpenID provider; '' in the bundle, which does not have it. */
  readonly oidcProvider: string
} = bundled
  ? {
      threadEntry: beside('gateway-thread.mjs'),
      clientNode: './client-node.mjs',
      examples: fileURLToPath(beside('config')),
      dashboard: fileURLToPath(beside('dashboard')),
      dashboardBuild: '',
      testHarness: '',
      oidcProvider: '',
    }
  : {
      threadEntry: beside('../../../program/threads/thread/entry.ts'),
      clientNode: '@kubernetes/client-node',
      examples: fileURLToPath(beside('../../../../config')),
      dashboard: '',
      dashboardBuild: fileURLToPath(beside('../../../../build/dashboard.ts')),
      testHarness: fileURLToPath(beside('../../../../test/harness')),
      oidcProvider: 'oidc-provider',
    }

/** The command's name in texts meant to be copied. */
export const COMMAND: string = bundled ? 'portcullis' : 'bin/portcullis'

function beside(path: string): URL {
  return new URL(path, import.meta.url)
}

function versionOfPackage(): string {
  const manifest: unknown = JSON.parse(readFileSync(beside('../../../../package.json'), 'utf8'))
  return typeof manifest === 'object' && manifest !== null ? String(Reflect.get(manifest, 'version')) : ''
}
