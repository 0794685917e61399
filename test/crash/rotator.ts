// The process that is killed while it changes the key of a store: by itself at a step, or by the process that waits for the line that it writes.

import { writeSync } from 'node:fs'
import process from 'node:process'
import { type RotationStep, rotateStoreKey } from '../../src/apiserver/io/store/rotation.ts'

export interface RotatorOrder {
  readonly file: string
  readonly keyFile: string
  /** It ends here as by kill -9; undefined = says each step and goes on. */
  readonly dieAt?: RotationStep
}

const { file, keyFile, dieAt }: RotatorOrder = JSON.parse(process.argv[2] ?? '')
rotateStoreKey({
  file,
  keyFile,
  onStep: (step) => {
    writeSync(1, `${step}\n`)
    if (step === dieAt) process.kill(process.pid, 'SIGKILL')
  },
})
