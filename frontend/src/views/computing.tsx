/** A healthy run's next step: what its computation consists of, and what could make that faster. */

import { percent } from "../format";
import { BUCKET_COLORS } from "../palette";
import type { Computing as Entry } from "../types";
import { Section } from "../ui/parts";

const PARTS_SHOWN = 6;

export function Computing({ computing }: { computing: Entry }) {
  const { layers, kinds, ops_ps: wholePs, next_steps: steps } = computing;
  return (
    <Section id="computing" title="What it computes, and what could make it faster">
      <div class="columns computing-columns">
        <Parts title="Layers" parts={layers} wholePs={wholePs} />
        <Parts title="Kinds of ops" parts={kinds} wholePs={wholePs} />
        <dl class="next-steps">
          {steps.map(({ topic, helps, text }) => (
            <div key={topic}>
              <dt>
                {topic}: <strong class={helps ? "won" : "faint"}>{verdictOn(helps)}</strong>
              </dt>
              <dd class="faint">{text}</dd>
            </div>
          ))}
        </dl>
      </div>
    </Section>
  );
}

function verdictOn(helps: boolean | null): string {
  if (helps === null) return "depends";
  return helps ? "worth trying" : "saves little";
}

/** "sequential_1/dense_2" is "dense_2", unless another part ends like that. */
function shortNames(names: readonly string[]): (name: string) => string {
  const last = (name: string) => name.split("/").pop() ?? name;
  return (name) =>
    names.filter((other) => last(other) === last(name)).length > 1 ? name : last(name);
}

function Parts(props: { title: string; parts: Entry["layers"]; wholePs: number }) {
  const { title, parts, wholePs } = props;
  if (parts.length === 0) return null;
  const short = shortNames(parts.map(({ name }) => name));
  return (
    <div>
      <h3>{title}</h3>
      <table class="layer-table">
        <tbody>
          {parts.slice(0, PARTS_SHOWN).map(({ name, ps }) => (
            <tr key={name}>
              <th scope="row" title={name}>
                {short(name)}
              </th>
              <td class="layer-bar">
                <span
                  style={{
                    width: `${(100 * ps) / Math.max(wholePs, 1)}%`,
                    background: BUCKET_COLORS.compute,
                  }}
                />
              </td>
              <td class="figures">{percent(ps, wholePs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
