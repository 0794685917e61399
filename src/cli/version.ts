// `portcullis version`: build and runtime. The names of the JSON are those of `kubectl version -o json`.

import { BUILD, type Build, treeState } from '../kit/io/program/build.ts'

export interface VersionOptions {
  readonly output: 'text' | 'json'
  readonly out: (text: string) => void
  /** Default: the running build. */
  readonly build?: Build
}

/** @returns the exit code */
export function version({ output, out, build = BUILD }: VersionOptions): number {
  const { commit, modified, date, from } = build
  const shown = {
    version: build.version,
    gitCommit: commit,
    gitTreeState: treeState(build),
    commitDate: date,
    build: from,
    nodeVersion: process.version,
    platform: `${process.platform}/${process.arch}`,
  }
  if (output === 'json') out(`${JSON.stringify(shown, undefined, 2)}\n`)
  else {
    const of =
      commit === '' ? `from ${from}` : `commit ${commit.slice(0, 12)}${modified ? ' with changes' : ''}, ${date}`
    out(`portcullis ${build.version} (${of}; Node ${process.version}, ${shown.platform})\n`)
  }
  return 0
}
