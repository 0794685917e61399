// The configuration of the generator of PodProtectors (--protection-generator-config).

import { parse } from 'yaml'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { readTextFile } from '../../pki/io/pki-files.ts'
import type { Config } from '../../process/config/config.ts'
import { parseGeneratorConfig } from '../core/generator/config.ts'
import type { GeneratorKind } from '../core/generator/kinds.ts'

/** Before anything is written. @throws {UserError} with all errors */
export function checkGeneratorConfig({ protection }: Pick<Config, 'protection'>): void {
  readGeneratorKinds(protection.generatorConfigFile)
}

/** @throws {UserError} with all errors */
export function readGeneratorKinds(file: string): readonly GeneratorKind[] {
  if (file === '') return []
  const flag = '--protection-generator-config'
  let data: unknown
  try {
    data = parse(readTextFile(file), { logLevel: 'error' })
  } catch (error) {
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    throw new UserError(`${flag} ${file} cannot be read: ${why}`, 'name a readable YAML file')
  }
  const { kinds, problems } = parseGeneratorConfig(data)
  if (problems.length === 0) return kinds
  const lines = problems.map(({ path, message, fix }) => `${file}: ${path}: ${message}; ${fix}`)
  throw new UserError(`${flag} has errors:\n${lines.join('\n')}`, 'fix them')
}
