// Generates clients/python/src/vivavoce/contract.py from the contract's descriptors: messages as dataclasses, enumerations, one method per
// operation that HTTP supports.

const OWN_FORMS = {
  "google.protobuf.Duration": "timedelta",
  "google.protobuf.Timestamp": "datetime",
  "google.protobuf.FloatValue": "float",
  "google.protobuf.DoubleValue": "float",
  "google.protobuf.Int32Value": "int",
  "google.protobuf.BoolValue": "bool",
  "google.protobuf.StringValue": "str",
};

/** By the numbers of `ScalarType`. */
const SCALARS = {
  1: ["float", "0.0"],
  2: ["float", "0.0"],
  5: ["int", "0"],
  8: ["bool", "False"],
  9: ["str", '""'],
  12: ["bytes", 'b""'],
  13: ["int", "0"],
};

/**
 * @param {readonly import("../src/server/http/bindings.js").HttpBinding[]} bindings
 * @param {Record<string, string>} words as contractWords gives them
 * @returns {string}
 */
export function pythonContract(bindings, words) {
  const { messages, enums } = typesOf(bindings.map(({ method }) => method));
  const names = namesOf([...messages, ...enums]);
  const parts = [
    `"""The contract in Python. Generated from proto/ by scripts/proto.mjs; do not edit."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from .messages import ContractEnum, Message
from .transport import Transport`,
    ...enums.map((one) => enumClass(one, names, words)),
    ...messages.map((one) => messageClass(one, names, words)),
    operationsClass(bindings, names, words),
  ];
  return `${parts.join("\n\n\n")}\n`;
}

function typesOf(methods) {
  const messages = new Map();
  const enums = new Map();
  const visit = (message) => {
    if (OWN_FORMS[message.typeName] || messages.has(message.typeName)) return;
    messages.set(message.typeName, message);
    for (const field of message.fields) {
      if (field.message) visit(field.message);
      if (field.enum) enums.set(field.enum.typeName, field.enum);
    }
  };
  for (const { input, output } of methods) {
    visit(input);
    visit(output);
  }
  const sorted = (map) => [...map.values()].sort((a, b) => (a.typeName < b.typeName ? -1 : 1));
  return { messages: sorted(messages), enums: sorted(enums) };
}

/** If two packages share a name, that of the inner package gets a prefix: `AudioDecisionReason`. */
function namesOf(types) {
  const names = new Map();
  const taken = new Set();
  for (const { typeName, name } of [...types].sort((a, b) => a.typeName.length - b.typeName.length)) {
    const inner = typeName.split(".").at(-2);
    const own = taken.has(name) ? `${inner[0].toUpperCase()}${inner.slice(1)}${name}` : name;
    taken.add(own);
    names.set(typeName, own);
  }
  return names;
}

const docstring = (text, indent) => (text ? [`${indent}"""${text.replaceAll("\\", "\\\\")}"""`] : []);

function enumClass(type, names, words) {
  return [
    `class ${names.get(type.typeName)}(ContractEnum):`,
    ...docstring(words[type.typeName], "    "),
    ...type.values.flatMap((value) => [
      `    ${value.localName} = "${value.localName}", "${value.name}"`,
      ...docstring(words[`${type.typeName}.${value.name}`], "    "),
    ]),
  ].join("\n");
}

function messageClass(type, names, words) {
  const fields = type.fields.flatMap((field) => {
    const [annotation, initial] = fieldType(field, names);
    return [
      `    ${field.name}: ${annotation} = ${initial}`,
      ...docstring(words[`${type.typeName}.${field.name}`], "    "),
    ];
  });
  const said = docstring(words[type.typeName], "    ");
  return [
    "@dataclass(frozen=True)",
    `class ${names.get(type.typeName)}(Message):`,
    ...said,
    ...(fields.length + said.length > 0 ? fields : ["    pass"]),
  ].join("\n");
}

function fieldType(field, names) {
  if (field.fieldKind === "map") throw new TypeError(`${field.name}: maps are not in the contract`);
  const single = singleType(field, names);
  if (field.fieldKind === "list") return [`tuple[${single[0]}, ...]`, "()"];
  // A member of a oneof that is not set must not be sent, not even as an empty text.
  return field.message || field.oneof ? [`${single[0]} | None`, "None"] : single;
}

function singleType(field, names) {
  if (field.message) return [OWN_FORMS[field.message.typeName] ?? names.get(field.message.typeName), "None"];
  if (field.enum) {
    const name = names.get(field.enum.typeName);
    return [name, `${name}.${field.enum.values[0].localName}`];
  }
  const scalar = SCALARS[field.scalar];
  if (!scalar) throw new TypeError(`${field.name}: no Python type for scalar ${field.scalar}`);
  return scalar;
}

function operationsClass(bindings, names, words) {
  const methods = bindings.map(({ method, verb, path, body }) => {
    const [input, output] = [method.input, method.output].map(({ typeName }) => names.get(typeName));
    const name = method.localName.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const sent = body === null ? "None" : body === "*" ? '"*"' : `"${body.field.name}"`;
    return [
      `    def ${name}(self, request: ${input}) -> ${output}:`,
      ...docstring(words[`${method.parent.typeName}.${method.name}`], "        "),
      `        return self._transport.call("${verb}", "${path}", ${sent}, request, ${output})`,
    ].join("\n");
  });
  return [
    `class Operations:
    """Every operation of the contract that HTTP can carry. A refusal is raised as a StatusError; a business outcome is an answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport`,
    ...methods,
  ].join("\n\n");
}
