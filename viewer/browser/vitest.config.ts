// Browser tests are named *.browser.ts, so that `npm test` leaves them out. `scripts/viewer browser BUILD` runs them.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/**/*.browser.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
