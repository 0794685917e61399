import { checkCosts } from './check-costs.ts'
import { FILES } from './table.ts'

checkCosts(FILES)
