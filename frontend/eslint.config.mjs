/** Rules that types cannot check: those of hooks, and a few slips. Babel parses; TypeScript checks types. */

import parser from "@babel/eslint-parser";
import hooks from "eslint-plugin-react-hooks";

export default [
  { ignores: ["src/document.ts"] },
  {
    files: ["**/*.{ts,tsx,mjs}"],
    languageOptions: {
      parser,
      parserOptions: {
        requireConfigFile: false,
        babelOptions: { babelrc: false, configFile: false, presets: ["@babel/preset-typescript"] },
      },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      eqeqeq: ["error", "always"],
      "no-constant-binary-expression": "error",
      "no-self-compare": "error",
      "no-unmodified-loop-condition": "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
